//! The arguments of Reservation (`ReservationArgs`), with Koordinator's names, defaults and bounds.

use pellucid_framework::args::{Problems, field, is_qualified_name, join};
use pellucid_framework::plugin::ArgsError;
use pellucid_plugin_helper::scored::is_extended;
use serde_json::{Map, Value, json};

use super::object::Reservation;

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReservationArgs {
    /// Seconds after its end at which a reservation is deleted.
    gc_seconds: i64,
    /// Whether reservations that have ended are deleted.
    collects: bool,
    /// Whether reservations of lower priority are evicted for pods.
    pub(super) is_preemptible: bool,
    /// Whether a reservation that may be placed over pods takes free room first.
    pub(super) prefers_free_room: bool,
    /// Extended resources, and domains of such, of which neither a node nor a reservation lacks anything for an owner.
    ignored: [Vec<String>; 2],
}

/// Seconds of `gcDurationSeconds` when it is absent or 0: a day.
const A_DAY: i64 = 86_400;

impl Default for ReservationArgs {
    fn default() -> Self {
        Self {
            gc_seconds: A_DAY,
            collects: true,
            is_preemptible: false,
            prefers_free_room: false,
            ignored: [Vec::new(), Vec::new()],
        }
    }
}

const GC_SECONDS: &str = "gcDurationSeconds";
const NO_GC: &str = "disableGarbageCollection";
const PREEMPTION: &str = "enablePreemption";
const IGNORED: [&str; 2] = ["ignoredResources", "ignoredResourceGroups"];
const PRE_ALLOCATION: &str = "preAllocationConfig";
const FREE_ROOM: &str = "preferNoPreAllocatedPods";
const INDEX: &str = "reservationSelectorIndex";

/// Accepted without effect, with what they may be: the search for victims has arguments of its own, what is due is done at once,
/// and no index has to be told by what it is asked.
const UNUSED: [(&str, i64, i64); 5] = [
    ("minCandidateNodesPercentage", 0, 100),
    ("minCandidateNodesAbsolute", 0, i32::MAX as i64),
    ("controllerWorkers", i32::MIN as i64, i32::MAX as i64),
    ("gcIntervalSeconds", 0, i64::MAX),
    ("resyncIntervalSeconds", 0, i64::MAX),
];

/// Returns a switch; `None` when it is absent or no switch.
fn switch(problems: &mut Problems, path: &str, value: &Value) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Bool(is_on) => Some(*is_on),
        value => {
            problems.add(path, "must be true or false", value);
            None
        }
    }
}

/// Returns a number within bounds; `None` when it is absent or no such number.
fn number(problems: &mut Problems, (name, least, most): (&str, i64, i64), value: &Value) -> Option<i64> {
    let number = value.as_i64().filter(|number| (least..=most).contains(number));
    if number.is_none() && !value.is_null() {
        let wanted = match most {
            i64::MAX => format!("must be an integer from {least}"),
            _ => format!("must be an integer from {least} to {most}"),
        };
        problems.add(name, wanted, value);
    }
    number
}

impl ReservationArgs {
    /// Parses the arguments. Fails with every problem found, not only the first.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let mut made = Self::default();
        let own = [GC_SECONDS, NO_GC, PREEMPTION, IGNORED[0], IGNORED[1], PRE_ALLOCATION, INDEX];
        let known: Vec<&str> = own.into_iter().chain(UNUSED.map(|(name, ..)| name)).collect();
        if let Some(fields) = problems.object("", args, &known) {
            made.read_fields(&mut problems, fields);
        }
        problems.into_result().map(|()| made)
    }

    fn read_fields(&mut self, problems: &mut Problems, fields: &Map<String, Value>) {
        let seconds = number(problems, (GC_SECONDS, 0, i64::MAX), field(fields, GC_SECONDS));
        self.gc_seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(A_DAY);
        self.collects = !switch(problems, NO_GC, field(fields, NO_GC)).unwrap_or(false);
        self.is_preemptible = switch(problems, PREEMPTION, field(fields, PREEMPTION)).unwrap_or(false);
        for (bounds, name) in UNUSED.iter().map(|bounds| (*bounds, bounds.0)) {
            number(problems, bounds, field(fields, name));
        }
        for (at, name) in IGNORED.into_iter().enumerate() {
            self.ignored[at] = ignored(problems, name, field(fields, name), at == 1);
        }
        self.read_pre_allocation(problems, field(fields, PRE_ALLOCATION));
        read_index(problems, field(fields, INDEX));
    }

    fn read_pre_allocation(&mut self, problems: &mut Problems, value: &Value) {
        let [mode, label, priority] =
            ["enableClusterMode", "clusterLabelKey", "clusterPriorityAnnotationKey"];
        let known = [mode, label, priority, FREE_ROOM];
        let Some(fields) = problems.object(PRE_ALLOCATION, value, &known) else { return };
        let path = |name| join(PRE_ALLOCATION, name);
        // Pods that others than the owners may give up are not taken over, whatever these say.
        switch(problems, &path(mode), field(fields, mode));
        for name in [label, priority] {
            problems.text(&path(name), field(fields, name));
        }
        self.prefers_free_room =
            switch(problems, &path(FREE_ROOM), field(fields, FREE_ROOM)).unwrap_or(false);
    }

    /// Returns the arguments as a configuration has them.
    pub(super) fn show(&self) -> Value {
        json!({
            GC_SECONDS: self.gc_seconds,
            NO_GC: !self.collects,
            PREEMPTION: self.is_preemptible,
            IGNORED[0]: self.ignored[0],
            IGNORED[1]: self.ignored[1],
            PRE_ALLOCATION: {FREE_ROOM: self.prefers_free_room},
        })
    }

    /// Returns when a reservation that has ended is deleted, in seconds since 1970.
    pub(super) fn deleted_at(&self, spec: &Reservation) -> Option<i64> {
        self.collects.then(|| spec.ended_at().saturating_add(self.gc_seconds))
    }

    /// Returns whether amounts of a resource are not compared.
    pub(super) fn ignores(&self, resource: &str) -> bool {
        let [names, groups] = &self.ignored;
        names.iter().any(|name| name == resource)
            || resource.split_once('/').is_some_and(|(group, _)| groups.iter().any(|known| known == group))
    }
}

/// Reads names of extended resources, or their domains.
fn ignored(problems: &mut Problems, path: &str, value: &Value, are_groups: bool) -> Vec<String> {
    let all = problems.texts(path, value);
    for (i, name) in all.iter().enumerate() {
        let (resource, wanted) = match are_groups {
            true => (format!("{name}/x"), "must be the domain of extended resources, such as example.com"),
            false => ((*name).to_owned(), "must be an extended resource, such as example.com/gpu"),
        };
        if are_groups && name.contains('/') || !is_extended(&resource) || !is_qualified_name(&resource) {
            problems.add(format!("{path}[{i}]"), wanted, &json!(name));
        }
    }
    all.into_iter().map(String::from).collect()
}

/// Looks at the fields of an index that Koordinator may keep, and this scheduler always has.
fn read_index(problems: &mut Problems, value: &Value) {
    let Some(fields) = problems.object(INDEX, value, &["enabled", "keyPrefixes", "keys"]) else { return };
    switch(problems, &join(INDEX, "enabled"), field(fields, "enabled"));
    for name in ["keyPrefixes", "keys"] {
        problems.texts(&join(INDEX, name), field(fields, name));
    }
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    const UNUSED_TEXT: &str = "accepted, without effect";
    let switch = |said: &str| json!({"type": "boolean", "default": false, "description": said});
    let texts = |said: &str| json!({"type": "array", "items": {"type": "string"}, "description": said});
    let object = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let text = json!({"type": "string", "description": UNUSED_TEXT});
    let mut properties = json!({
        GC_SECONDS: {
            "type": "integer",
            "minimum": 0,
            "default": A_DAY,
            "description": "Seconds after its end at which a reservation is deleted; 0 is the default.",
        },
        NO_GC: switch("Keeps reservations that have ended."),
        PREEMPTION: switch("Evicts reservations for pods of higher priority, as pods are."),
        IGNORED[0]: texts("Extended resources of which neither nodes nor reservations lack anything."),
        IGNORED[1]: texts("Domains of such resources."),
        PRE_ALLOCATION: object(json!({
            FREE_ROOM: switch("Places a reservation over pods only where it does not fit beside them."),
            "enableClusterMode": switch(UNUSED_TEXT),
            "clusterLabelKey": text,
            "clusterPriorityAnnotationKey": text,
        })),
        INDEX: object(json!({
            "enabled": switch(UNUSED_TEXT), "keyPrefixes": texts(UNUSED_TEXT), "keys": texts(UNUSED_TEXT),
        })),
    });
    for (name, least, most) in UNUSED {
        let bounds =
            json!({"type": "integer", "minimum": least, "maximum": most, "description": UNUSED_TEXT});
        properties[name] = bounds;
    }
    object(properties)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_of_koordinator_is_read() {
        let given = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "ReservationArgs",
            "enablePreemption": true,
            "minCandidateNodesPercentage": 10,
            "minCandidateNodesAbsolute": 100,
            "controllerWorkers": 1,
            "gcDurationSeconds": 60,
            "gcIntervalSeconds": 0,
            "disableGarbageCollection": true,
            "resyncIntervalSeconds": 60,
            "preAllocationConfig": {
                "enableClusterMode": true, "clusterLabelKey": "a", "clusterPriorityAnnotationKey": "b",
                "preferNoPreAllocatedPods": true,
            },
            "ignoredResources": ["example.com/gpu"],
            "ignoredResourceGroups": ["example.org"],
            "reservationSelectorIndex": {"enabled": true, "keyPrefixes": ["a/"], "keys": ["b"]},
        });
        let read = ReservationArgs::read(&given).expect("readable");
        assert!(read.is_preemptible && !read.collects && read.prefers_free_room);
        assert_eq!(read.gc_seconds, 60);
        let ignored = ["example.com/gpu", "example.org/any", "example.com/other", "cpu"];
        assert_eq!(ignored.map(|name| read.ignores(name)), [true, true, false, false]);
        assert_eq!(ReservationArgs::read(&read.show()), Ok(read));
        let known = schema();
        for name in given.as_object().expect("an object").keys() {
            let is_typemeta = matches!(name.as_str(), "apiVersion" | "kind");
            assert!(is_typemeta || known["properties"][name].is_object(), "{name}");
        }
    }

    #[test]
    fn absent_and_zero_are_the_defaults() {
        for given in [Value::Null, json!({}), json!({"gcDurationSeconds": 0, "preAllocationConfig": null})] {
            assert_eq!(ReservationArgs::read(&given), Ok(ReservationArgs::default()));
        }
    }

    #[test]
    fn all_problems_are_named() {
        let bad = json!({
            "extra": 1,
            "gcDurationSeconds": -1,
            "minCandidateNodesPercentage": 101,
            "controllerWorkers": 1i64 << 40,
            "ignoredResources": ["cpu", "example.com/gpu", "kubernetes.io/x"],
            "ignoredResourceGroups": ["a/b", "kubernetes.io", ""],
            "preAllocationConfig": {"preferNoPreAllocatedPods": "yes", "more": 1},
            "reservationSelectorIndex": {"keys": "b"},
        });
        let fields: Vec<String> =
            ReservationArgs::read(&bad).expect_err("refused").into_iter().map(|e| e.field).collect();
        assert_eq!(
            fields,
            [
                "extra",
                "gcDurationSeconds",
                "minCandidateNodesPercentage",
                "controllerWorkers",
                "ignoredResources[0]",
                "ignoredResources[2]",
                "ignoredResourceGroups[0]",
                "ignoredResourceGroups[1]",
                "ignoredResourceGroups[2]",
                "preAllocationConfig.more",
                "preAllocationConfig.preferNoPreAllocatedPods",
                "reservationSelectorIndex.keys",
            ]
        );
    }
}
