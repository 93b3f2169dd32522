//! Runs Reserve, for placements that are carried out and for those of trials alike.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{Cluster, Hold, Stage};
use pellucid_framework::plugin::{CycleValue, Room};
use pellucid_framework::profile::{Aside, Enabled, Profile};
use pellucid_framework::{Absent, Cause, Code, NumaAffinity, Reason, Reservation, View};
use pellucid_model::effect::BindingMarks;
use pellucid_model::{NodeIdx, Pod, PodId};
use smallvec::{SmallVec, smallvec};

use crate::attempt::alignment;
use crate::attempt::chain::Prepared;
use crate::attempt::overrides;

/// What Reserve is told of the pods of one shape.
#[derive(Clone, Default)]
pub(crate) struct ForReserve {
    /// What PreFilter of plugins prepared, by the plugin's index in the profile.
    values: SmallVec<[(usize, CycleValue); 1]>,
    /// Whether all plugins hold nothing for the pods.
    is_idle: bool,
}

impl ForReserve {
    /// Picks the values of the plugins that may hold something, among those whose PreFilter is kept.
    pub(crate) fn of(profile: &Profile, idle: Aside, prepared: &Prepared) -> Self {
        let value = |enabled: &Enabled| {
            enabled.plugin.pre_filter().filter(|_| !idle.has(enabled))?;
            let found = prepared.values.iter().find(|(at, _)| profile.filter[*at].index == enabled.index);
            found.map(|(_, value)| (enabled.index, value.clone()))
        };
        Self {
            values: profile.reserve.iter().filter_map(value).collect(),
            is_idle: profile.reserve.iter().all(|enabled| idle.has(enabled)),
        }
    }

    fn of_plugin(&self, enabled: &Enabled) -> Option<&CycleValue> {
        self.values.iter().find(|(index, _)| *index == enabled.index).map(|(_, value)| value)
    }
}

/// What the decision knows of a pod.
#[derive(Default)]
pub(crate) struct Known {
    /// The plugins that the pod does not concern.
    pub(crate) aside: Aside,
    /// Those, and the plugins that hold nothing for pods like it. They are not asked.
    pub(crate) idle: Aside,
    pub(crate) prepared: ForReserve,
}

impl Known {
    /// Tells the plugins which node Reserve is about to be asked about.
    pub(crate) fn prefetch(&self, view: View<'_>, profile: &Profile, node: NodeIdx) {
        if self.prepared.is_idle {
            return;
        }
        let asked = profile.reserve.iter().filter(|enabled| !self.idle.has(enabled));
        asked.filter_map(|enabled| enabled.plugin.reserve()).for_each(|plugin| plugin.prefetch(view, node));
    }
}

/// Runs Reserve of a profile for a placed pod, and attaches the plugins' holds to the pod. `affinity` is that of the pod
/// on the node before it was placed. Fails with the cause of the first plugin that refuses; what others hold by then
/// stays until the pod is released.
pub(crate) fn reserve(
    cluster: &mut Cluster,
    profile: &Profile,
    (id, pod): (PodId, &Pod),
    node: NodeIdx,
    affinity: Option<NumaAffinity>,
) -> Result<(), Cause> {
    reserve_if(cluster, profile, (id, pod), (node, &Known::default()), affinity, |_| true)
}

/// Does the same by what is known of the pod.
pub(crate) fn reserve_by(
    cluster: &mut Cluster,
    profile: &Profile,
    pod: (PodId, &Pod),
    (node, known): (NodeIdx, &Known),
    affinity: Option<NumaAffinity>,
) -> Result<(), Cause> {
    reserve_if(cluster, profile, pod, (node, known), affinity, |_| true)
}

/// Does the same for a state that is rebuilt, whose pod has its marks already: a plugin that would mark the pod held
/// nothing for it, whatever it would choose now.
pub(crate) fn reserve_unmarked(
    cluster: &mut Cluster,
    profile: &Profile,
    pod: (PodId, &Pod),
    node: NodeIdx,
    affinity: Option<NumaAffinity>,
) -> Result<(), Cause> {
    let node = (node, &Known::default());
    reserve_if(cluster, profile, pod, node, affinity, |chosen| chosen.marks.is_none())
}

/// Where a plugin refuses the pod in the room that another one lets it into, the others of its rooms are tried in turn. The
/// cause is that of the first.
fn reserve_if(
    cluster: &mut Cluster,
    profile: &Profile,
    pod: (PodId, &Pod),
    (node, known): (NodeIdx, &Known),
    affinity: Option<NumaAffinity>,
    counts: impl Fn(&Reservation) -> bool,
) -> Result<(), Cause> {
    if known.prepared.is_idle {
        return Ok(());
    }
    if profile.node_overrides.is_empty() {
        // No plugin lets the pod into a room.
        return reserve_but(cluster, profile, pod, (node, known, &[], &[]), affinity, counts);
    }
    let (mut refused, mut first) = (Absent::new(), None);
    let ignored = overrides::ignored(cluster, profile, known.idle, pod.1, node);
    loop {
        let overlay = cluster.begin();
        let reserved =
            reserve_but(cluster, profile, pod, (node, known, &refused, &ignored), affinity, &counts);
        let Err(cause) = reserved else {
            cluster.commit(overlay);
            return Ok(());
        };
        let host = cluster.pod(pod.0).and_then(|record| record.host);
        let Some(host) = host.filter(|host| !refused.contains(host)) else {
            cluster.commit(overlay);
            return Err(first.unwrap_or(cause));
        };
        cluster.rollback(overlay);
        first.get_or_insert(cause);
        refused.push(host);
    }
}

/// Reserves in no room of `refused`, and without the pods of `ignored` what cannot be had with them. The affinity is that of the
/// first room; in another one, or beside all, it is found out anew.
fn reserve_but(
    cluster: &mut Cluster,
    profile: &Profile,
    (id, pod): (PodId, &Pod),
    (node, known, refused, ignored): (NodeIdx, &Known, &[PodId], &[PodId]),
    affinity: Option<NumaAffinity>,
    counts: impl Fn(&Reservation) -> bool,
) -> Result<(), Cause> {
    let mut affinity = affinity;
    let mut is_of_room = affinity.is_none() || refused.is_empty();
    for enabled in profile.reserve.iter().filter(|enabled| !known.idle.has(enabled)) {
        let Some(plugin) = enabled.plugin.reserve() else { continue };
        let held = cluster.pod(id).map_or(&[][..], |record| &record.holds);
        if held.iter().any(|hold| hold.plugin == enabled.plugin.name()) {
            // Read back while a state is rebuilt.
            continue;
        }
        let is_alone = held.is_empty();
        // Those that choose the room come first.
        if !is_of_room && enabled.plugin.node_overrides().is_none() {
            affinity = affinity_in_room(cluster, profile, (id, pod), node)?;
            is_of_room = true;
        }
        let chosen = match (room_of(cluster, id, enabled.plugin.name()), affinity) {
            (Some((others, room)), _) => cluster.probe(|cluster| {
                overrides::leave(cluster, &others);
                plugin.reserve_within(View::new(cluster), pod, node, affinity, &room)
            })?,
            (None, _) if !refused.is_empty() && enabled.plugin.node_overrides().is_some() => {
                plugin.reserve_but(View::new(cluster), pod, node, refused)?
            }
            (None, affinity) => {
                let prepared = known.prepared.of_plugin(enabled);
                let ask = |cluster: &Cluster| match (affinity, prepared) {
                    (Some(affinity), _) => plugin.reserve_aligned(View::new(cluster), pod, node, affinity),
                    (None, Some(prepared)) => {
                        plugin.reserve_prepared(View::new(cluster), pod, node, prepared)
                    }
                    (None, None) => plugin.reserve(View::new(cluster), pod, node),
                };
                match ask(cluster) {
                    Err(_) if !ignored.is_empty() => cluster.probe(|cluster| {
                        overrides::leave(cluster, ignored);
                        ask(cluster)
                    })?,
                    asked => asked?,
                }
            }
        };
        let Some(chosen) = chosen.filter(&counts) else { continue };
        let plugin = enabled.plugin.name();
        let hold = Hold { plugin, what: chosen.what, marks: chosen.marks, whole: None };
        if !is_alone && let Err((other, key)) = agrees(cluster, id, &hold) {
            let reason = Reason::about(ReasonCode::PluginsDisagree, &*format!("{other} {plugin}: {key}"));
            return Err(Cause::new(plugin, Code::Unschedulable, reason));
        }
        cluster.reserve(id, hold);
    }
    Ok(())
}

/// Returns the affinity of a placed pod as the filters see it where nothing but the room in which it stands is kept for it.
fn affinity_in_room(
    cluster: &mut Cluster,
    profile: &Profile,
    (id, pod): (PodId, &Pod),
    node: NodeIdx,
) -> Result<Option<NumaAffinity>, Cause> {
    let host = cluster.pod(id).and_then(|record| record.host);
    cluster.probe(|cluster| {
        cluster.release(id);
        overrides::leave(cluster, host.as_slice());
        alignment::affinity(profile, View::new(cluster), &pod.spec, node)
    })
}

/// Returns the pod in whose room a pod stands, with what a plugin holds for it. Of a pod that is placed over others: those,
/// with what the plugin holds for the first of them.
#[inline]
fn room_of(cluster: &Cluster, id: PodId, plugin: &str) -> Option<(SmallVec<[PodId; 2]>, Room)> {
    let record = cluster.pod(id).filter(|record| record.host.is_some() || record.given.is_some())?;
    let held = |id: PodId| cluster.pod(id)?.holds.iter().find(|hold| hold.plugin == plugin);
    if let Some(host) = record.host {
        let what = held(host)?.what.clone();
        let given = cluster.pod(host)?.given.as_ref();
        let is_limit = given.is_some_and(|given| given.is_limit);
        return Some((smallvec![host], Room { what, is_limit }));
    }
    let guests = &record.given.as_ref()?.guests;
    let what = guests.iter().find_map(|guest| held(*guest))?.what.clone();
    Some((guests.clone(), Room { what, is_limit: false }))
}

/// Places a nominated pod in a trial, with what its node would give it. If a plugin has nothing left for it, the pod
/// stands there without.
pub fn place_nominee(cluster: &mut Cluster, profile: &Profile, id: PodId, node: NodeIdx) {
    let Some(pod) = cluster.pod(id).map(|record| record.pod.clone()) else { return };
    let aligned = overrides::affinity(cluster, profile, &pod, node);
    cluster.place(id, node, Stage::Reserved);
    drop(aligned.and_then(|affinity| reserve(cluster, profile, (id, &pod), node, affinity)));
}

/// Checks that a hold marks the pod with nothing that another hold marks differently. Fails with the other plugin and
/// the key.
fn agrees(cluster: &Cluster, id: PodId, hold: &Hold) -> Result<(), (&'static str, Arc<str>)> {
    let others = cluster.pod(id).map_or(&[][..], |record| &record.holds);
    let marked = || others.iter().filter(|other| other.marks.is_some());
    // Text is made only where there is something to compare it with.
    let Some(new) = marked().next().and_then(|_| hold.made_marks()) else { return Ok(()) };
    for other in marked() {
        let Some(marks) = other.made_marks() else { continue };
        BindingMarks::clone(&marks).add(&new).map_err(|key| (other.plugin, key))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pellucid_cluster::marks_of;
    use pellucid_framework::{Plugin, Reserve, points};
    use pellucid_model::Name;

    use super::*;

    /// A plugin that marks every pod with one annotation.
    struct Marker(&'static str, &'static str, &'static str);

    impl Plugin for Marker {
        fn name(&self) -> &'static str {
            self.0
        }
        points! { reserve }
    }

    impl Reserve for Marker {
        fn reserve(&self, _: View<'_>, _: &Pod, _: NodeIdx) -> Result<Option<Reservation>, Cause> {
            let marks = Some(BindingMarks::annotation(self.1, self.2).into());
            Ok(Some(Reservation { what: Arc::new(()), marks }))
        }
    }

    /// Reserves for a pod with two plugins; returns the marks of its Binding.
    fn marked(plugins: [Marker; 2]) -> Result<Option<Arc<BindingMarks>>, Cause> {
        let enabled = |(index, plugin)| Enabled { plugin: Arc::new(plugin), weight: 0, index };
        let reserve_by = plugins.into_iter().enumerate().map(enabled).collect();
        let profile = Profile { reserve: reserve_by, ..Profile::default() };
        let mut cluster = Cluster::new(0, [Name::new("us")], Vec::new());
        let pod = Arc::new(Pod { scheduler_name: "us".into(), ..Pod::default() });
        cluster.apply_pod(pod.clone(), &mut Vec::new());
        let id = cluster.find_pod(&pod.key).expect("it waits");
        cluster.place_by_name(id, &"n".into(), Stage::Reserved);
        let node = cluster.find_node(&"n".into()).expect("it has a slot");
        reserve(&mut cluster, &profile, (id, &pod), node, None)?;
        Ok(marks_of(&cluster.pod(id).expect("it is placed").holds))
    }

    #[test]
    fn a_binding_has_the_marks_of_all_plugins_unless_they_contradict_each_other() {
        let marks = marked([Marker("A", "x/seat", "1"), Marker("B", "x/card", "2")]).expect("they agree");
        assert_eq!(marks.expect("there are some").annotations.len(), 2);
        assert!(marked([Marker("A", "x/seat", "1"), Marker("B", "x/seat", "1")]).is_ok());
        let cause =
            marked([Marker("A", "x/seat", "1"), Marker("B", "x/seat", "2")]).expect_err("they differ");
        assert_eq!((cause.plugin, cause.reasons[0].code), ("B", ReasonCode::PluginsDisagree));
        assert!(cause.message().contains("A B: x/seat"), "{}", cause.message());
    }
}
