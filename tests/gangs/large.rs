//! Groups of many gangs: their cost while they grow, that they are planned when small enough, and the messages when
//! they are not.
#![expect(clippy::disallowed_methods, reason = "it measures how long things take")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use pellucid::cluster::Input;
use pellucid::config;
use pellucid::framework::profile::Profile;
use pellucid::model::gang::GangTerms;
use pellucid::model::{GangKey, Pod};
use pellucid::plugins::registry;
use pellucid::queue::QueueStage;

use crate::common::driver::{Core, settings};
use crate::gangs::made::{SCHEDULER, core_with, host, member, single, terms};

/// How gangs name each other.
#[derive(Clone, Copy, Debug)]
enum Form {
    Ring,
    Star,
    Clique,
}

const FORMS: [Form; 3] = [Form::Ring, Form::Star, Form::Clique];

fn key(i: usize) -> GangKey {
    GangKey::new("ns", &format!("g{i:04}"))
}

/// Returns the gangs that one of `n` names, including itself.
fn named(form: Form, i: usize, n: usize) -> Arc<[GangKey]> {
    let mut all: Vec<usize> = match form {
        Form::Ring => vec![(i + n - 1) % n, i, (i + 1) % n],
        Form::Star if i > 0 => vec![0, i],
        Form::Star | Form::Clique => (0..n).collect(),
    };
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(key).collect()
}

fn pods_of(i: usize, groups: &Arc<[GangKey]>) -> Vec<Pod> {
    let terms = GangTerms { groups: groups.clone(), ..terms(3) };
    let name = key(i).name.to_string();
    (0..3).map(|p| member(&name, &format!("{name}-{p}"), 10, terms.clone())).collect()
}

fn profile(arguments: &str) -> Profile {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: \
         {SCHEDULER}\n  pluginConfig:\n  - name: Coscheduling\n    args: {arguments}\n"
    );
    config::parse(&text, "test", &registry()).expect("the configuration is valid").profiles.remove(0)
}

/// Creates a group, with a plain pod after each gang. Returns the total time, and the longest time between the
/// creation of a plain pod and its placement.
fn create(core: &mut Core, form: Form, n: usize) -> (Duration, Duration) {
    let (begun, mut longest) = (Instant::now(), Duration::ZERO);
    for i in 0..n {
        let groups = named(form, i, n);
        for pod in pods_of(i, &groups) {
            core.see(&pod);
        }
        let plain = single(&format!("plain-{i}"), 1);
        let created = Instant::now();
        core.attempt(&plain);
        assert_eq!(core.placed(&[plain]), 1, "{form:?} {i}");
        longest = longest.max(created.elapsed());
        assert!(begun.elapsed() < QUICKLY, "{form:?}: {i} gangs took {:?}", begun.elapsed());
    }
    (begun.elapsed(), longest)
}

fn units_of_gangs(core: &Core) -> usize {
    core.scheduler.queue().units().filter(|(_, unit)| unit.gang.is_some()).count()
}

/// Much more than it takes, and minutes less than when joining costs the square of the group's size.
const QUICKLY: Duration = Duration::from_secs(60);

#[test]
fn many_gangs_that_name_each_other_are_planned_as_one_and_keep_nobody_waiting() {
    for form in FORMS {
        let mut core = Core::new(settings(profile("{maxGroupGangs: 1000}")));
        (0..20).for_each(|i| core.see_node(&host(&format!("n{i}"), 64_000)));
        let (took, longest) = create(&mut core, form, 500);
        println!("{form:?}: 500 gangs took {took:?}, a plain pod {longest:?} at most");
        assert!(longest < Duration::from_secs(5), "{form:?}: a plain pod took {longest:?}");
        let placed = core.scheduler.cluster().gangs().all().values().map(|g| g.counts.placed()).sum::<u32>();
        assert_eq!((placed, units_of_gangs(&core)), (1500, 0), "{form:?}");
    }
}

#[test]
fn a_group_of_too_many_gangs_is_refused_alone_and_recovers_when_it_is_smaller() {
    for form in FORMS {
        let mut core = core_with(&[64_000; 20]);
        let (took, longest) = create(&mut core, form, 120);
        println!("{form:?}: 120 gangs took {took:?}, a plain pod {longest:?} at most");
        let last = pods_of(119, &named(form, 119, 120));
        assert_eq!(core.queued(&last[0]), Some(QueueStage::Gated), "{form:?}");
        let said = core.message(&last[2]);
        let expected = match form {
            Form::Ring => {
                "the gang group is too large: 120 gangs name each other around ns/g0119, 100 may form a group \
                 (maxGroupGangs)"
            }
            Form::Star => {
                "another gang of the group is not ready: the gang group is too large: ns/g0000 names 120 gangs, 100 \
                 may form a group (maxGroupGangs)"
            }
            Form::Clique => {
                "the gang group is too large: ns/g0119 names 120 gangs, 100 may form a group (maxGroupGangs)"
            }
        };
        assert_eq!(said, expected);
        // A gang outside the group is planned nevertheless.
        core.see_all(&crate::gangs::made::members("other", 3, 10, &terms(3)));
        assert_eq!(core.run().len(), 1);
        // Every member gets the message after a moment, including the first ones.
        core.wait(Duration::from_secs(64));
        let first = pods_of(1, &named(form, 1, 120));
        assert!(core.message(&first[0]).contains("(maxGroupGangs)"), "{}", core.message(&first[0]));
        // The owner splits the group in two.
        for i in 0..120 {
            let half = i / 60 * 60;
            let groups: Arc<[GangKey]> = named(form, i - half, 60)
                .iter()
                .map(|k| key(k.name[1..].parse::<usize>().expect("a number") + half))
                .collect();
            core.see_all(&pods_of(i, &groups));
        }
        assert_eq!(core.scheduler.cluster().gangs().group_of(&key(70)).len(), 60, "{form:?}");
        core.run();
        let gangs = core.scheduler.cluster().gangs().all();
        assert!(gangs.values().all(|gang| gang.counts.placed() == 3), "{form:?}");
    }
}

#[test]
fn a_gang_of_too_many_pods_is_refused_until_some_are_gone() {
    let mut core = Core::new(settings(profile("{maxGroupMembers: 5}")));
    core.see_node(&host("n0", 64_000));
    let pods = crate::gangs::made::members("crew", 6, 10, &terms(2));
    core.see_all(&pods[..1]);
    assert_eq!(core.message(&pods[0]), "waiting for the pods of gang ns/crew: 1 of 2 are there");
    core.see_all(&pods[1..]);
    assert_eq!(core.run().len(), 0);
    let expected = "the gang group is too large: 6 pods in the group of ns/crew, 5 may be planned together \
                    (maxGroupMembers)";
    assert_eq!(core.message(&pods[5]), expected);
    core.wait(Duration::from_secs(1));
    assert_eq!(core.message(&pods[0]), expected);
    core.delete(&pods[3]);
    core.run();
    assert_eq!(core.placed(&pods), 5);
    // Once the gang has its quorum, its pods are planned one by one.
    core.attempt_all(&pods[3..4]);
    assert_eq!(core.placed(&pods), 6);
}

#[test]
fn a_gang_of_ten_thousand_pods_that_all_have_something_to_complain_about_comes_and_goes_quickly() {
    let mut core = core_with(&[1]);
    let begun = Instant::now();
    let pods: Vec<Pod> = (0..10_000)
        .map(|i| {
            // The youngest comes first, and no two have the same terms.
            let pod = member("crew", &format!("crew-{i}"), 1000, terms(10_000 + i));
            let mut mark = pod.gang.as_deref().cloned().expect("it is a member");
            mark.problems = Box::new([pellucid::model::gang::GangProblem {
                field: "metadata.annotations[x]".into(),
                value: i.to_string().into(),
                problem: "not a number".into(),
                is_fatal: false,
            }]);
            Pod { gang: Some(Arc::new(mark)), created: -i64::from(i), ..pod }
        })
        .collect();
    core.see_all(&pods);
    let gang = core.gang("crew");
    assert_eq!((gang.definition.min, gang.definition.warnings.len()), (19_999, 17));
    for pod in pods.iter().rev().take(5_000) {
        core.apply(Input::PodDeleted(pod.key.clone()));
    }
    assert_eq!(core.gang("crew").definition.min, 14_999);
    let took = begun.elapsed();
    println!("10,000 pods came and 5,000 went in {took:?}");
    assert!(took < QUICKLY, "it took {took:?}");
}
