//! The route `POST /apis/v1/simulate`.
//!
//! `question` decodes the request; `diagnosis::simulate` plans it.

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::simulate::{SimulateRequest, Simulation};
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::what_if::simulate::simulate;
use pellucid_http::Route;
use serde_json::json;

use crate::app::metrics::diagnosis::Explained;
use crate::app::rest::question::question;
use crate::app::rest::routes::{adapt, costed};

pub(in crate::app) fn route(explained: Explained) -> Route<Snapshot> {
    Route::get(
        "/apis/v1/simulate",
        "simulate",
        "Plans hypothetical pods and gangs on a changed copy of the state; nothing changes",
        BodySchema::of::<Simulation>(),
        move |snapshot: &Snapshot, params, info| {
            let _timed = explained.timed();
            costed(|| {
                let question = question(snapshot, params.body()?)?;
                Ok(json!(simulate(snapshot, &question, info.now).map_err(adapt)?))
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
