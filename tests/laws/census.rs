//! A plugin that keeps a register of what the hooks of its state are told: which pods there are, and on which nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::Cluster;
use pellucid::framework::endpoint::{ReadContext, ReadError};
use pellucid::prelude::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const NAME: &str = "Census";

/// Every pod, with its uid, its request of CPU and its node.
#[derive(Clone, Default)]
struct Register {
    pods: BTreeMap<PodId, (Arc<str>, i64, Option<NodeIdx>)>,
}

impl DerivedState for Register {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn pod_came(&mut self, _cx: &HookContext<'_>, id: PodId, pod: &Pod) -> Touched {
        let known = self.pods.insert(id, (pod.uid.clone(), pod.spec.requests.list.milli_cpu, None));
        assert!(known.is_none(), "{} comes once", pod.key);
        Touched::Nothing
    }

    fn pod_changed(&mut self, _cx: &HookContext<'_>, id: PodId, old: &Pod, new: &Pod) -> Touched {
        let (uid, cpu, _) = self.pods.get_mut(&id).expect("it came");
        assert_eq!((&*uid, *cpu), (&old.uid, old.spec.requests.list.milli_cpu));
        *cpu = new.spec.requests.list.milli_cpu;
        Touched::Nothing
    }

    fn pod_left(&mut self, _cx: &HookContext<'_>, id: PodId, pod: &Pod) -> Touched {
        let (uid, _, node) = self.pods.remove(&id).expect("it came");
        assert_eq!((&uid, node), (&pod.uid, None), "it left its node before");
        Touched::Nothing
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        let (.., node) = self.pods.get_mut(&placed.id).expect("it came");
        assert_eq!(node.replace(placed.node), None);
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        let (.., node) = self.pods.get_mut(&placed.id).expect("it came");
        assert_eq!(node.take(), Some(placed.node));
    }
}

struct Census;

impl Plugin for Census {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { permit }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Register::default())]
    }
}

// A plugin is enabled at a point that it implements.
impl Permit for Census {
    fn permit(&self, _view: View<'_>, _pod: &Pod, _node: NodeIdx) -> Permitted {
        Permitted::Yes
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    Ok(json!(cx.view.state::<Register>().map(|register| register.pods.len())))
}

pub(crate) fn registration() -> Registration {
    let state = Endpoint::of::<usize>("state", "The number of pods", read_state);
    Registration::without_args(NAME, "Keeps a register of pods", || Census).with_endpoints([state])
}

/// Checks that the register has the pods of the state, as they are.
pub(crate) fn check(cluster: &Cluster) -> Result<(), TestCaseError> {
    let register = cluster.derived::<Register>().expect("the plugin is enabled");
    let entry = |(id, record): (PodId, &pellucid::cluster::PodRecord)| {
        (id, (record.pod.uid.clone(), record.pod.spec.requests.list.milli_cpu, record.node))
    };
    let pods: BTreeMap<_, _> = cluster.pods().map(entry).collect();
    prop_assert_eq!(&register.pods, &pods);
    Ok(())
}
