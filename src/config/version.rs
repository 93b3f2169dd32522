//! The supported versions of the file format and their differences.
//!
//! All versions are read into the same [`super::file::File`]. The few differences are defined here: fields that were
//! added or removed, the default weights, and that v1beta2 has its defaults at the extension points where later
//! versions have them at `multiPoint`.

/// A version of the file format, ordered from the oldest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// Served by kube-scheduler 1.22 to 1.27.
    V1Beta2,
    /// Served by kube-scheduler 1.23 to 1.28.
    V1Beta3,
    /// Served since kube-scheduler 1.25.
    #[default]
    V1,
}

/// An object whose fields differ between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// The document itself.
    Top,
    /// An entry of `profiles`.
    Profile,
    /// `plugins` of a profile.
    Plugins,
}

use Version::{V1, V1Beta2, V1Beta3};

/// Fields that not all versions have, with the first and the last version that has them.
const NOT_EVERYWHERE: &[(Object, &str, Version, Version)] = &[
    (Object::Top, "healthzBindAddress", V1Beta2, V1Beta2),
    (Object::Top, "metricsBindAddress", V1Beta2, V1Beta2),
    (Object::Top, "delayCacheUntilActive", V1, V1),
    (Object::Profile, "percentageOfNodesToScore", V1, V1),
    (Object::Plugins, "multiPoint", V1Beta3, V1),
    (Object::Plugins, "placementGenerate", V1, V1),
    (Object::Plugins, "placementScore", V1, V1),
];

/// Plugins whose default score weight was 1 in v1beta2 and is higher since.
const LIGHTER_IN_V1BETA2: [&str; 3] = ["TaintToleration", "NodeAffinity", "InterPodAffinity"];

impl Version {
    /// Every supported version, newest first.
    pub(super) const ALL: [Self; 3] = [V1, V1Beta3, V1Beta2];

    /// Returns the version with this `apiVersion`, if it is supported.
    pub(super) fn of(api_version: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.api_version() == api_version)
    }

    pub(super) const fn api_version(self) -> &'static str {
        match self {
            V1Beta2 => "kubescheduler.config.k8s.io/v1beta2",
            V1Beta3 => "kubescheduler.config.k8s.io/v1beta3",
            V1 => "kubescheduler.config.k8s.io/v1",
        }
    }

    fn short(self) -> &'static str {
        self.api_version().rsplit('/').next().unwrap_or_default()
    }

    /// Returns why this version lacks a field that another version has, or `None` if it has the field.
    pub(super) fn lacks(self, object: Object, field: &str) -> Option<String> {
        let (.., first, last) =
            NOT_EVERYWHERE.iter().find(|(of, name, ..)| (*of, *name) == (object, field))?;
        let own = self.short();
        if self < *first {
            Some(format!("{own} has no such field; it came with {}", first.short()))
        } else if self > *last {
            Some(format!("{own} has no such field any more; it went after {}", last.short()))
        } else {
            None
        }
    }

    /// Returns whether the version has `multiPoint`, which enables plugins at all their points and holds the defaults.
    pub(super) fn has_multi_point(self) -> bool {
        self.lacks(Object::Plugins, "multiPoint").is_none()
    }

    /// Returns the default weight of a plugin in this version; `today` is the default weight in v1.
    pub(super) fn default_weight(self, plugin: &str, today: i64) -> i64 {
        if self == V1Beta2 && LIGHTER_IN_V1BETA2.contains(&plugin) { today.min(1) } else { today }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_know_their_names() {
        for version in Version::ALL {
            assert_eq!(Version::of(version.api_version()), Some(version));
        }
        assert_eq!(Version::of("kubescheduler.config.k8s.io/v1beta1"), None);
        assert_eq!(Version::of("v1"), None);
    }

    #[test]
    fn fields_come_and_go() {
        for (object, field, versions) in [
            (Object::Top, "parallelism", &[V1, V1Beta3, V1Beta2][..]),
            (Object::Top, "percentageOfNodesToScore", &[V1, V1Beta3, V1Beta2]),
            (Object::Profile, "percentageOfNodesToScore", &[V1]),
            (Object::Top, "healthzBindAddress", &[V1Beta2]),
            (Object::Top, "delayCacheUntilActive", &[V1]),
            (Object::Plugins, "multiPoint", &[V1, V1Beta3]),
            (Object::Plugins, "preEnqueue", &[V1, V1Beta3, V1Beta2]),
        ] {
            for version in Version::ALL {
                let has = version.lacks(object, field).is_none();
                assert_eq!(has, versions.contains(&version), "{field} of {object:?} in {version:?}");
            }
        }
        let message = V1Beta3.lacks(Object::Top, "metricsBindAddress");
        assert_eq!(message.as_deref(), Some("v1beta3 has no such field any more; it went after v1beta2"));
    }

    #[test]
    fn weights_are_those_of_the_version() {
        for (plugin, today, v1beta2) in [
            ("TaintToleration", 3, 1),
            ("NodeAffinity", 2, 1),
            ("PodTopologySpread", 2, 2),
            ("NodeName", 0, 0),
        ] {
            assert_eq!(V1.default_weight(plugin, today), today);
            assert_eq!(V1Beta3.default_weight(plugin, today), today);
            assert_eq!(V1Beta2.default_weight(plugin, today), v1beta2, "{plugin}");
        }
    }
}
