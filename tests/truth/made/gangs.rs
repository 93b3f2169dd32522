//! Gangs in all five dialects, and groups of gangs.

use serde_json::{Value, json};

use crate::made::{Theme, pod};
use crate::objects::Objects;
use crate::random::Rng;

/// How a gang is declared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Unicore,
    Coscheduling,
    Koordinator,
    KubeBatch,
    Native,
}

const DIALECTS: [Dialect; 5] =
    [Dialect::Unicore, Dialect::Coscheduling, Dialect::Koordinator, Dialect::KubeBatch, Dialect::Native];

/// Adds some gangs.
pub(super) fn add(rng: &mut Rng, objects: &mut Objects, theme: &Theme) {
    let n = rng.between(1, 3);
    let is_group = n > 1 && rng.chance(25);
    for i in 0..n {
        let name = format!("g{i}");
        let dialect = if is_group && i < 2 { Dialect::Koordinator } else { rng.pick(&DIALECTS) };
        let namespace = if is_group && i == 1 { "team" } else { "default" };
        let group = (is_group && i < 2).then_some(r#"["default/g0","team/g1"]"#);
        add_gang(rng, objects, theme, Gang { name: &name, namespace, dialect, group });
    }
}

struct Gang<'a> {
    name: &'a str,
    namespace: &'a str,
    dialect: Dialect,
    group: Option<&'a str>,
}

fn add_gang(rng: &mut Rng, objects: &mut Objects, theme: &Theme, gang: Gang<'_>) {
    let members = rng.between(2, 5);
    let min = if rng.chance(10) { members + 1 } else { rng.between(2, members) };
    let is_patient = gang.dialect == Dialect::Koordinator && gang.group.is_none() && rng.chance(15);
    let alike = rng.chance(70);
    let priority = rng.pick(&theme.priorities);
    let first = pod(rng, "like", theme.rare / 3);
    let version = match gang.dialect {
        Dialect::Coscheduling => Some("scheduling.x-k8s.io/v1alpha1"),
        Dialect::KubeBatch => Some("scheduling.incubator.k8s.io/v1alpha1"),
        Dialect::Native => Some("scheduling.k8s.io/v1alpha2"),
        Dialect::Unicore | Dialect::Koordinator => None,
    };
    if let Some(version) = version {
        let spec = match gang.dialect {
            Dialect::Native => json!({"schedulingPolicy": {"gang": {"minCount": min}}}),
            _ => json!({"minMember": min}),
        };
        objects.put(json!({
            "apiVersion": version, "kind": "PodGroup", "spec": spec,
            "metadata": {"name": gang.name, "namespace": gang.namespace, "uid": format!("uid-{}", gang.name)},
        }));
    }
    for i in 0..members {
        let mut json = if alike { first.clone() } else { pod(rng, "like", theme.rare / 3) };
        json["metadata"]["name"] = format!("{}-{i}", gang.name).into();
        json["metadata"]["namespace"] = gang.namespace.into();
        json["spec"]["priority"] = priority.into();
        declare(&mut json, &gang, min, is_patient);
        objects.put_pod(json);
    }
}

fn declare(json: &mut Value, gang: &Gang<'_>, min: usize, is_patient: bool) {
    let meta = &mut json["metadata"];
    match gang.dialect {
        Dialect::Unicore => {
            meta["labels"]["gang.unicore.mcyou.cn/name"] = gang.name.into();
            meta["labels"]["gang.unicore.mcyou.cn/available-count"] = min.to_string().into();
        }
        Dialect::Coscheduling => meta["labels"]["scheduling.x-k8s.io/pod-group"] = gang.name.into(),
        Dialect::Koordinator => {
            let key = |end: &str| format!("gang.scheduling.koordinator.sh/{end}");
            meta["annotations"][key("name")] = gang.name.into();
            meta["annotations"][key("min-available")] = min.to_string().into();
            if let Some(group) = gang.group {
                meta["annotations"][key("groups")] = group.into();
            }
            if is_patient {
                meta["annotations"][key("mode")] = "NonStrict".into();
                meta["annotations"][key("waiting-time")] = "30s".into();
            }
        }
        Dialect::KubeBatch => meta["annotations"]["scheduling.k8s.io/group-name"] = gang.name.into(),
        Dialect::Native => json["spec"]["schedulingGroup"] = json!({"podGroupName": gang.name}),
    }
}
