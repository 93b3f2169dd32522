//! The route `POST /apis/v1/simulate`.
//!
//! `question` decodes the request; `diagnosis::simulate` plans it.

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::simulate::{SimulateRequest, Simulation};
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::reads::stamp;
use pellucid_diagnosis::what_if::simulate::simulate;
use pellucid_http::{ReadError, Route};
use pellucid_model::Viewer;
use serde_json::{Value, json};

use crate::metrics::diagnosis::Explained;
use crate::rest::question::question;
use crate::rest::routes::{adapt, costed};

pub(crate) fn route(explained: Explained) -> Route<Snapshot> {
    Route::get(
        "/apis/v1/simulate",
        "simulate",
        "Plans hypothetical pods and gangs on a changed copy of the state; nothing changes",
        BodySchema::of::<Simulation>(),
        move |snapshot: &Snapshot, params, info| {
            let _timed = explained.timed();
            own_names(&info.viewer, params.body()?)?;
            costed(|| {
                let question = question(snapshot, params.body()?)?;
                let mut body = json!(simulate(snapshot, &question, info.now).map_err(adapt)?);
                let tables = body.get_mut("scores").and_then(Value::as_array_mut);
                tables.into_iter().flatten().for_each(|of| stamp(of, "ScoreTable", snapshot, info.now));
                stamp(&mut body, "Simulation", snapshot, info.now);
                Ok(body)
            })
        },
    )
    .asked_with(BodySchema::of::<SimulateRequest>())
    .long()
    .described(
        "The same code that schedules plans on a copy of the published state, after the changes, in the order of \
         the queue. Other pending pods are left out unless they are included.",
    )
    .not_found("PodNotFound", "include: pod default/p is not known: it does not exist, or has left and nothing is recorded of it")
}

/// Fields of a question whose texts are `namespace/name`.
const KEYS: [&str; 5] = ["include", "includeGangs", "deletePod", "pod", "gang"];

/// Fails when a question names objects that its reader does not see: the answer would say whether they exist.
fn own_names(viewer: &Viewer, question: Value) -> Result<(), ReadError> {
    if viewer.limits().is_none() {
        return Ok(());
    }
    for list in ["pods", "podGroups"] {
        for manifest in question[list].as_array().into_iter().flatten() {
            if manifest["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
                own(viewer, "default")?;
            }
        }
    }
    own_names_in(viewer, "", &question)
}

fn own_names_in(viewer: &Viewer, field: &str, value: &Value) -> Result<(), ReadError> {
    match value {
        Value::String(namespace) if field == "namespace" => own(viewer, namespace),
        Value::String(key) if KEYS.contains(&field) => {
            key.split_once('/').map_or(Ok(()), |(namespace, _)| own(viewer, namespace))
        }
        Value::Array(items) => items.iter().try_for_each(|item| own_names_in(viewer, field, item)),
        Value::Object(fields) => {
            fields.iter().try_for_each(|(field, value)| own_names_in(viewer, field, value))
        }
        _ => Ok(()),
    }
}

fn own(viewer: &Viewer, namespace: &str) -> Result<(), ReadError> {
    if namespace.is_empty() || viewer.sees(namespace) {
        return Ok(());
    }
    let message = "the question names objects of a namespace that it is not asked about; pods without a namespace are in \
                   default";
    Err(ReadError::Forbidden("Forbidden", message.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_own_objects_only() {
        let viewer = Viewer::of(["mine"]);
        let asked = |question: Value| own_names(&viewer, question);
        for good in [
            json!({"include": ["mine/a"], "edits": [{"setQuorum": {"gang": "mine/g", "min": 1}}, {"uncordon": "n"}]}),
            json!({"pods": [{"metadata": {"name": "p", "namespace": "mine"}}], "edits": [{"removeNode": "n"}]}),
        ] {
            assert_eq!(asked(good.clone()), Ok(()), "{good}");
            assert_eq!(own_names(&Viewer::All, good), Ok(()));
        }
        for bad in [
            json!({"include": ["mine/a", "theirs/a"]}),
            json!({"includeGangs": ["theirs/g"]}),
            json!({"pods": [{"metadata": {"name": "p"}}]}),
            json!({"podGroups": [{"metadata": {"name": "p", "namespace": ""}}]}),
            json!({"pods": [{"metadata": {"name": "p", "namespace": "theirs"}}]}),
            json!({"edits": [{"deletePod": "theirs/a"}]}),
            json!({"edits": [{"dropHostPorts": {"gang": "theirs/g"}}]}),
            json!({"edits": [{"deleteObject": {"kind": "X", "namespace": "theirs", "name": "a"}}]}),
        ] {
            assert!(matches!(asked(bad.clone()), Err(ReadError::Forbidden(..))), "{bad}");
            assert_eq!(own_names(&Viewer::All, bad), Ok(()));
        }
    }
}
