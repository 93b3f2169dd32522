//! What the end of pods of other quotas does: a pod or a gang whose share another quota holds fits once that one's pods have
//! left, and is told so.

use super::*;
use crate::common::reads::{ask, list, text};
use crate::raising::{child, parent};
use crate::waiting::{fix, fixes};

/// Two quotas that share what their parent has.
fn two_of_one(max: i64, [ta, tb]: [i64; 2]) -> Core {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &parent("dept", ta + tb, max));
    see(&mut core, &child("ta", "dept", ta, max));
    see(&mut core, &child("tb", "dept", tb, max));
    core
}

#[test]
fn a_gang_whose_share_another_quota_holds_fits_once_that_ones_pods_have_left() {
    for is_placed in [true, false] {
        let mut core = two_of_one(6, [2, 2]);
        let mut holder = of("tb", "b1", 3000);
        if is_placed {
            holder = on(&holder, "a");
        } else {
            // No node takes it, and it requests all the same.
            Arc::make_mut(&mut holder.spec).requests.list.memory = 1 << 60;
        }
        core.see(&holder);
        let members = ["a1", "a2"].map(|name| in_gang(of("ta", name, 2000), "g", 2));
        members.iter().for_each(|pod| core.see(pod));
        core.run();
        assert_eq!(placed(&core, &members), 0);
        let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g");
        assert_eq!(body["outlook"]["code"], "NotNow", "{body}");
        assert!(!text(&body, "/verdict/remedy").is_empty());
        if is_placed {
            let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g/suggestions?max=20");
            let going = fix(list(&body, "/fixes"), "let pod ns/b1 go");
            assert_eq!((&going["slots"], &going["verified"]), (&json!(2), &json!(true)));
        }
        core.delete(&holder);
        core.run_after(30 * SECOND);
        assert_eq!(placed(&core, &members), 2);
    }
}

#[test]
fn a_pod_whose_share_another_quota_holds_is_told_whose_end_helps() {
    // The other quota borrows, or is within its min.
    for mins in [[1, 1], [1, 3]] {
        let mut core = two_of_one(4, mins);
        let (holder, late) = (on(&of("tb", "b1", 3000), "a"), of("ta", "late", 3000));
        core.see(&holder);
        core.see(&late);
        core.run();
        assert_eq!(placed(&core, [&late]), 0);
        let body = ask(&mut core, "/apis/v1/explain/pods/ns/late");
        assert_eq!(body["outlook"]["code"], "NotNow", "{body}");
        fix(&fixes(&mut core, "late"), "let pod ns/b1 go");
        core.delete(&holder);
        core.run_after(30 * SECOND);
        assert_eq!(placed(&core, [&late]), 1);
    }
}
