//! Validation of the ports of containers and Services.
//!
//! Only numbers and protocols are checked. Port names, and conflicts between the host ports of one pod, are not.

use serde_json::Value;

use crate::errors::FieldError;
use crate::fields::list;
use crate::kinds::validate::among_if_set;

const RANGE: &str = "must be between 1 and 65535, inclusive";
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Checks the ports of a container at `path`.
pub(crate) fn of_container(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, port) in list(&container["ports"]).iter().enumerate() {
        let here = format!("{path}.ports[{index}]");
        if port["containerPort"].as_i64().unwrap_or(0) == 0 {
            errors.push(FieldError::required(format!("{here}.containerPort"), ""));
        } else {
            errors.extend(in_range(port, &here, "containerPort"));
        }
        if port["hostPort"] != 0 {
            errors.extend(in_range(port, &here, "hostPort"));
        }
        errors.extend(among_if_set(&port["protocol"], format!("{here}.protocol"), &PROTOCOLS));
    }
    errors
}

/// Checks the ports of a Service.
pub(crate) fn of_service(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, port) in list(&spec["ports"]).iter().enumerate() {
        let here = format!("spec.ports[{index}]");
        errors.extend(in_range(port, &here, "port"));
        errors.extend(among_if_set(&port["protocol"], format!("{here}.protocol"), &PROTOCOLS));
        errors.extend(in_range(port, &here, "targetPort"));
    }
    errors
}

/// Checks that a port number is valid. A target port may also be a name, which is not checked.
fn in_range(port: &Value, path: &str, key: &str) -> Option<FieldError> {
    let number = port[key].as_i64()?;
    let is_port = (1..=65_535).contains(&number);
    (!is_port).then(|| FieldError::invalid(format!("{path}.{key}"), &port[key], RANGE))
}
