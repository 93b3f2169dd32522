//! Claims of generic ephemeral volumes, which a pod owns.

use super::{from_template, living, owner};
use crate::api::Api;
use crate::fields::list;
use crate::kinds::storage::CLAIMS;
use crate::options::Options;
use crate::store::{Key, Object};

/// Returns whether a pod may have ephemeral volumes. It searches the bytes, because most pods have none.
pub(super) fn may_have(pod: &Object) -> bool {
    const WORD: &[u8] = b"\"volumeClaimTemplate\"";
    pod.body.windows(WORD.len()).any(|window| window == WORD)
}

/// Creates the claims of a pod's ephemeral volumes.
pub(super) fn reconcile(api: &Api, key: &Key) {
    let Some((pod_kind, _, pod)) = living(api, "pods", key) else { return };
    let Some(kind) = api.kind_of(CLAIMS) else { return };
    for volume in list(&pod["spec"]["volumes"]) {
        let template = &volume["ephemeral"]["volumeClaimTemplate"];
        let (true, Some(name)) = (template.is_object(), volume["name"].as_str()) else { continue };
        let mut claim = from_template(template);
        claim["metadata"]["name"] = format!("{}-{name}", key.1).into();
        claim["metadata"]["ownerReferences"] = owner(&pod_kind, &pod);
        // An existing claim is this pod's own, or a clash that the pod must wait out.
        let _ = api.create(&kind, &key.0, claim, &Options::controller());
    }
}
