//! The machine under a node, in short: `2 sockets x 2 NUMA x 16 cores x 2 threads`. Each number counts within the one before
//! it, so this one has 128 CPUs.

use serde_json::{Value, json};

use crate::errors::FieldError;

/// Annotation of a node with its machine.
const MACHINE: &str = "sandbox.pellucid.dev/machine";
/// Most CPUs of a machine: those that a cpuset can name.
const MAX_CPUS: u64 = 1024;

/// A machine whose sockets are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    sockets: u64,
    /// NUMA nodes of a socket.
    numa: u64,
    /// Cores of a NUMA node.
    cores: u64,
    /// Threads of a core.
    threads: u64,
}

/// Returns the error for an annotation that cannot be read.
pub(crate) fn invalid(node: &Value) -> Option<FieldError> {
    let value = &node["metadata"]["annotations"][MACHINE];
    let why = Machine::parse(value.as_str()?).err()?;
    Some(FieldError::invalid(format!("metadata.annotations[{MACHINE}]"), value, &why))
}

/// Returns the machine of a node, if its annotation names one.
pub(crate) fn of(node: &Value) -> Option<Machine> {
    Machine::parse(node["metadata"]["annotations"][MACHINE].as_str()?).ok()
}

impl Machine {
    /// Parses the short form. Fails with what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "must be like 2 sockets x 2 NUMA x 16 cores x 2 threads";
        let mut numbers = [0u64; 4];
        let parts: Vec<&str> = text.split(['x', '×']).map(str::trim).collect();
        if parts.len() != numbers.len() {
            return Err(FORM.to_owned());
        }
        for ((part, number), words) in parts.iter().zip(&mut numbers).zip([
            ["socket", "sockets"],
            ["NUMA", "numa"],
            ["core", "cores"],
            ["thread", "threads"],
        ]) {
            let (digits, word) = part.split_once(' ').unwrap_or((part, words[0]));
            *number = digits.parse().ok().filter(|n| (1..=MAX_CPUS).contains(n)).ok_or(FORM)?;
            if !words.contains(&word.trim()) {
                return Err(format!("{FORM}; {word:?} stands where {} must", words[1]));
            }
        }
        let [sockets, numa, cores, threads] = numbers;
        let made = Self { sockets, numa, cores, threads };
        if made.cpus() > MAX_CPUS {
            return Err(format!("has {} CPUs; {MAX_CPUS} are the most that a cpuset can name", made.cpus()));
        }
        if sockets * numa > 64 {
            return Err(format!("has {} NUMA nodes; 64 are the most", sockets * numa));
        }
        Ok(made)
    }

    fn cpus(self) -> u64 {
        self.sockets * self.numa * self.cores * self.threads
    }

    /// Returns the value of annotation `cpu-topology`. The threads of a core are as far apart as there are cores, as on
    /// most machines.
    pub(crate) fn cpu_topology(self) -> Value {
        let (all, per_socket) = (self.sockets * self.numa * self.cores, self.numa * self.cores);
        let cpu = |id: u64| {
            let core = id % all;
            json!({"id": id, "core": core % per_socket, "socket": core / per_socket, "node": core / self.cores})
        };
        json!({"detail": (0..self.cpus()).map(cpu).collect::<Value>()})
    }

    /// Returns the zones of a node with this machine: CPUs as they lie, memory and huge pages in equal parts.
    pub(crate) fn zones(self, memory: &[(String, u64)]) -> Value {
        let n = self.sockets * self.numa;
        let amount = |name: &str, amount: String| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
        let zone = |id: u64| {
            let mut resources = vec![amount("cpu", (self.cores * self.threads).to_string())];
            resources.extend(memory.iter().map(|(name, bytes)| amount(name, (bytes / n).to_string())));
            json!({"name": format!("node-{id}"), "type": "Node", "resources": resources})
        };
        (0..n).map(zone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_read() {
        let want = Machine { sockets: 2, numa: 2, cores: 16, threads: 2 };
        for text in [
            "2 sockets x 2 NUMA x 16 cores x 2 threads",
            "2x2x16x2",
            "2 sockets × 2 numa × 16 cores × 2 threads",
        ] {
            assert_eq!(Machine::parse(text), Ok(want), "{text}");
        }
        assert_eq!(Machine::parse("1 socket x 1 NUMA x 1 core x 1 thread").map(Machine::cpus), Ok(1));
        for bad in
            ["", "2x2x16", "2 cores x 2 NUMA x 16 cores x 2 threads", "0x1x1x1", "2x2x300x2", "9x9x1x1"]
        {
            assert!(Machine::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_machine_has_cpus_and_zones() {
        let machine = Machine::parse("2x1x2x2").expect("a machine");
        let detail = machine.cpu_topology();
        assert_eq!(detail["detail"][6], json!({"id": 6, "core": 0, "socket": 1, "node": 1}));
        let zones = machine.zones(&[("memory".to_owned(), 8 << 30)]);
        assert_eq!(zones[1]["name"], "node-1");
        assert_eq!(zones[1]["resources"][0]["allocatable"], "4");
        assert_eq!(zones[1]["resources"][1]["allocatable"], (4u64 << 30).to_string());
    }
}
