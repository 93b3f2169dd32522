//! A gang's preemption: what users see of it, `minResources`, and what happens before Bindings.

use pellucid::cluster::Stage;
use pellucid::cluster::preemptions::VictimState;
use pellucid::model::GangKey;
use pellucid::model::gang::{Dialect, PodGroup};
use pellucid::model::requests::ResourceList;

use super::*;
use crate::common::reads::ask;
use crate::common::storage::{claim, class, using, volume};
use crate::gangs::made::in_dialect;

#[test]
fn minimum_resources_that_are_taken_by_others_are_made_free() {
    for (cpu, evicted) in [(3200, 4), (4100, 0)] {
        let (mut core, low) = four_full();
        core.see_object(Object::PodGroup(PodGroup {
            key: GangKey::new("ns", "high"),
            uid: "uid-high".into(),
            terms: terms(4),
            min_resources: Some(ResourceList { milli_cpu: cpu, ..ResourceList::default() }),
            ..PodGroup::default()
        }));
        let of = |i: usize| in_dialect(Dialect::Coscheduling, "high", &format!("high-{i}"), 800, terms(4));
        let gang: Vec<Pod> = (0..4).map(|i| ranked(of(i), 10)).collect();
        let ordered = core.try_gang(&gang);
        assert_eq!(core.refusal("high").code, ReasonCode::GangMinResources);
        assert_eq!((ordered.victims().len(), core.n_nominated(&gang)), (evicted, evicted), "{cpu}");
        let is_noted = core.refusal("high").message.contains("; preemption: ");
        assert_eq!(is_noted, evicted == 0, "{}", core.refusal("high").message);
        if evicted > 0 {
            low.iter().for_each(|pod| core.delete(pod));
            core.run();
            assert_eq!(core.placed(&gang), 4);
        }
    }
}

#[test]
fn each_member_shows_its_part_and_the_whole() {
    let (mut core, _) = four_full();
    let gang = high(4, 800, 4);
    core.try_gang(&gang);
    let mut explain = |name: &str| ask(&mut core, &format!("/apis/v1/explain/pods/ns/{name}/preemption"));
    let body = explain("high-0");
    assert_eq!(body["preemption"]["victims"].as_array().map(Vec::len), Some(1));
    assert_eq!(body["preemption"]["gangs"][0], "ns/high");
    let whole = &body["gangPreemption"];
    assert_eq!((&whole["victims"], &whole["waitingFor"]), (&4.into(), &4.into()));
    assert_eq!(whole["parts"].as_array().map(Vec::len), Some(4));
    assert_eq!(body["search"]["candidates"][0]["brokenGangs"], 0);
    let summary = body["summary"].as_str().unwrap_or_default();
    assert!(
        summary.ends_with(
            "of 4 members of gang ns/high that preempt as one; it waits for 4 of 4 victims to be gone."
        ),
        "{summary}"
    );
    let rule = explain("low-0")["asVictim"]["rule"].as_str().map(str::to_owned).unwrap_or_default();
    assert!(rule.ends_with("and with it its gang ns/high of 4"), "{rule}");
}

#[test]
fn a_quorum_whose_bindings_did_not_begin_goes_as_a_whole_and_in_memory() {
    let mut core = core_with(&[]);
    ["n0", "n1"].into_iter().for_each(|name| see_host(&mut core, name, 1000));
    // The claim is bound to a volume on node `n0` between the decision and the Binding.
    for object in [class(), volume("disk", Some("n0")), claim("data")] {
        core.see_object(object);
    }
    let mut low = members("low", 2, 800, &terms(2));
    low[0] = using(low[0].clone(), "data");
    core.attempt_all(&low);
    assert_eq!(low.iter().map(|pod| core.stage(pod)).collect::<Vec<_>>(), [Some(Stage::PreBinding); 2]);
    core.ordered();
    let gang = high(2, 800, 2);
    let ordered = core.try_gang(&gang);
    assert_eq!(ordered.victims().len(), 0, "nothing is deleted");
    assert_eq!((core.placed(&gang), core.placed(&low)), (2, 0));
    let book = core.scheduler.cluster().preemptions();
    let victims: Vec<_> = book.open().flat_map(|(_, p)| &p.victims).map(|v| v.state.clone()).collect();
    assert_eq!(victims, [VictimState::Cancelled, VictimState::Cancelled]);
    assert_eq!(book.counts().victims, 2);
    let taken = ["n0", "n1"].map(|node| ReasonCode::PlacementTakenBack.message(node));
    let messages: Vec<String> = low.iter().map(|pod| core.message(pod)).collect();
    assert_eq!(messages.iter().filter(|m| taken.contains(m)).count(), 1, "{messages:?}");
    assert_eq!(messages.iter().filter(|m| m.contains("before the first Binding")).count(), 1, "{messages:?}");
}

#[test]
fn a_gang_without_anybody_below_it_says_so() {
    let mut core = core_with(&[1000; 2]);
    core.see(&ranked(victim("equal", 800, "n0"), 10));
    let gang = high(2, 800, 2);
    assert_eq!(core.try_gang(&gang).victims().len(), 0);
    let refusal = core.refusal("high");
    assert_eq!(refusal.shares[0].placeable, 1);
    assert!(
        refusal.message.ends_with(
            "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
        ),
        "{}",
        refusal.message
    );
}
