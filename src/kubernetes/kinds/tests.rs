//! Tests of the registry: each kind has an entry of its own, whose decoder makes objects of the kind.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

#[test]
fn every_kind_is_served_at_a_place_of_its_own() {
    let all: Vec<_> = resources(&[]).collect();
    let names: BTreeSet<_> = all.iter().map(|(name, _)| *name).collect();
    let places: BTreeSet<_> = all.iter().map(|(_, resource)| (resource.group, resource.plural)).collect();
    let n = ObjectKind::ALL.len() + 2;
    assert_eq!((all.len(), names.len(), places.len()), (n, n, n));
    let required: Vec<_> = all.iter().filter(|(_, resource)| resource.is_required).collect();
    assert_eq!(required.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["Pod", "Node"]);
}

#[test]
fn an_entry_reads_objects_of_its_kind_and_knows_whether_they_have_a_namespace() {
    for kind in ObjectKind::ALL {
        let resource = built_in(kind).resource;
        let namespace = if resource.is_namespaced { "ns" } else { "" };
        let manifest = json!({"metadata": {"name": "o", "namespace": namespace}});
        let object = Decoder::default().object(kind, &manifest).expect("readable");
        assert_eq!((object.kind(), object.key()), (kind, (namespace.into(), "o".into())));
        let other = json!({"metadata": {"name": "o", "namespace": "other"}});
        let object = Decoder::default().object(kind, &other).expect("readable");
        assert!(!resource.is_namespaced || object.key().0.as_str() == "other", "{kind:?}");
        let unnamed = Decoder::default().object(kind, &json!({"metadata": {}})).expect_err("unreadable");
        assert_eq!((unnamed.kind, &*unnamed.field), (kind.as_str(), "metadata.name"));
    }
}

#[test]
fn the_client_names_a_kind_without_its_group() {
    let resource = Kind::Object(ObjectKind::PodGroupX).api_resource();
    assert_eq!((&*resource.kind, &*resource.api_version), ("PodGroup", "scheduling.x-k8s.io/v1alpha1"));
    assert_eq!(path(&resource), "/apis/scheduling.x-k8s.io/v1alpha1/podgroups");
    let resource = Kind::Pod.api_resource();
    assert_eq!((&*resource.kind, &*resource.api_version), ("Pod", "v1"));
    assert_eq!(path(&resource), "/api/v1/pods");
}
