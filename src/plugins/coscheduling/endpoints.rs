//! The `state` endpoint: totals over all gangs.
//!
//! Views of single gangs also need queue stages and verdicts, which plugins cannot read; see `diagnosis`.

use pellucid_api::rest::gangs::CoschedulingState;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use serde_json::{Value, json};

pub(super) fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut state = CoschedulingState::default();
    for gang in cx.view.cluster().gangs().all().into_values() {
        let (definition, counts) = (&gang.definition, gang.counts);
        state.gangs += 1;
        let is_undefined = definition.undefined.is_some();
        state.undefined_gangs += usize::from(is_undefined);
        state.satisfied_gangs += usize::from(!is_undefined && gang.created() > 0 && gang.is_satisfied());
        *state.dialects.entry(definition.dialect.as_str().into()).or_default() += 1;
        state.pending_members += counts.pending;
        state.waiting_members += counts.waiting;
        state.permitted_members += counts.permitted;
        state.bound_members += counts.bound;
        state.finished_members += gang.finished.len() as u32;
    }
    Ok(json!(state))
}
