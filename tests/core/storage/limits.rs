//! The numbers behind a refusal for too many volumes, and the reads about a node.

use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext, ReadError};
use pellucid::framework::list::List;
use pellucid::model::Now;
use serde_json::{Value, json};

use super::ask::{Answer, ask, plugin};
use super::world::{cluster, pod};

const CLUSTER: &[&str] = &[
    "node a",
    "node b",
    "csinode a drivers=d:2",
    "csinode b drivers=d:3,e",
    "class k provisioner=d wait",
    "pv v1 csi=d:h1",
    "pv v2 csi=d:h2",
    "claim c1 volume=v1 bound",
    "claim c2 volume=v2 bound",
    "claim x class=k",
    "claim y class=k",
    "pod o1 on=a claims=c1,c2",
    "pod o2 on=b claims=c1",
    "attachment t driver=d node=b pv=v2",
];

#[test]
fn a_refusal_says_how_many_volumes_are_left_and_where() {
    let cluster = cluster(CLUSTER);
    let (plugin, spec) = (plugin("NodeVolumeLimits"), pod("pod p claims=x,y").spec);
    let Answer::PerNode(answers) = ask(&*plugin, &cluster, &spec) else { panic!("it filters") };
    let cause = answers[0].1.clone().expect("node a is full");
    let nodes: Vec<_> = answers.iter().map(|(n, _)| *n).collect();
    let view = View::new(&cluster);
    let measures = plugin.filter().expect("it filters").measure(view, &spec, &cause, &nodes);
    let [measure] = &measures[..] else { panic!("{measures:?}") };
    assert_eq!(&*measure.resource, "attachable-volumes-csi-d");
    assert_eq!((measure.requested, measure.available), (2, 1));
    assert_eq!(&**view.name(measure.best_node), "b");
}

#[test]
fn nodes_can_be_read() {
    let cluster = cluster(CLUSTER);
    let read = |path: &str, node: &str| -> Result<Value, ReadError> {
        let registry = pellucid::plugins::registry();
        let factory = registry.iter().find(|f| f.name() == "NodeVolumeLimits").unwrap();
        let endpoint = factory.endpoints().into_iter().find(|e| e.path == path).unwrap();
        let params = PathParams::from([("nodeName".to_owned(), node.to_owned())]);
        (endpoint.read)(&ReadContext {
            view: View::new(&cluster),
            params: &params,
            now: Now::default(),
            list: &List::default(),
        })
    };
    let row = |node: &str, limit: i64, used: usize, attached_only: usize| json!({"nodeName": node, "driver": "d", "limit": limit, "used": used, "attachedOnly": attached_only});
    let state = read("state", "").unwrap();
    assert_eq!(
        state,
        json!({"limits": [row("a", 2, 2, 0), row("b", 3, 2, 1)], "full": 1, "truncated": false})
    );
    let any = json!({"nodeName": "b", "driver": "e", "used": 0, "attachedOnly": 0});
    let of_node = read("nodes/:nodeName", "b").unwrap();
    assert_eq!(of_node, json!({"nodeName": "b", "limits": [row("b", 3, 2, 1), any]}));
    assert!(matches!(read("nodes/:nodeName", "gone"), Err(ReadError::NotFound { code: "NodeNotFound", .. })));
}
