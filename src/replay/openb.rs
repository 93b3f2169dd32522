//! Reads the node and pod lists of Alibaba's GPU cluster trace of 2023 ("openb").
//!
//! The header must match and every value must be valid, including GPU shares that fit the number of GPUs. The first
//! invalid value is reported with file, line, column and value.

use std::path::Path;

use super::rows::{MOST, MOST_GPUS, read};
use super::{TraceError, TraceNode, TracePod};

const NODE_COLUMNS: [&str; 5] = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];
const POD_COLUMNS: [&str; 11] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];

pub(super) fn read_nodes(file: &Path) -> Result<Vec<TraceNode>, TraceError> {
    read(file, &NODE_COLUMNS, |row| {
        let node = TraceNode {
            name: row.object_name("sn")?,
            cpu_milli: row.amount("cpu_milli", MOST)?,
            memory_mib: row.amount("memory_mib", MOST)?,
            gpus: row.amount("gpu", MOST_GPUS)?,
            model: row.text("model").to_owned(),
        };
        match (node.gpus, node.model.is_empty()) {
            (0, false) => Err(row.wrong("model", "is given, but the node has no GPU")),
            (1.., true) => Err(row.wrong("model", "is empty, but the node has GPUs")),
            _ => row.label_value("model").map(|()| node),
        }
    })
}

pub(super) fn read_pods(file: &Path) -> Result<Vec<TracePod>, TraceError> {
    read(file, &POD_COLUMNS, |row| {
        row.label_value("qos")?;
        row.seconds("scheduled_time")?;
        let pod = TracePod {
            name: row.object_name("name")?,
            cpu_milli: row.amount("cpu_milli", MOST)?,
            memory_mib: row.amount("memory_mib", MOST)?,
            gpus: row.amount("num_gpu", MOST_GPUS)?,
            gpu_milli: row.amount("gpu_milli", 1000)?,
            models: row.models("gpu_spec")?,
            qos: row.text("qos").to_owned(),
        };
        row.seconds("creation_time")?;
        row.seconds("deletion_time")?;
        match (pod.gpus, pod.gpu_milli) {
            (0, 1..) => Err(row.wrong("gpu_milli", "is a share of a GPU, but num_gpu is 0")),
            (1.., 0) => Err(row.wrong("gpu_milli", "is no share of a GPU, but num_gpu is not 0")),
            (2.., ..1000) => Err(row.wrong("gpu_milli", "must be 1000 when num_gpu is more than 1")),
            _ => Ok(pod),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::rows::testing::read_text;
    use super::*;

    #[test]
    fn rows_become_nodes_and_pods_in_order() {
        let nodes = "sn,cpu_milli,memory_mib,gpu,model\nb,32000,262144,0,\na,96000,1024,8,V9\n";
        let nodes = read_text(read_nodes, nodes).unwrap();
        assert_eq!(nodes[0].name, "b");
        assert_eq!((nodes[1].gpus, nodes[1].model.as_str()), (8, "V9"));
        let header = POD_COLUMNS.join(",");
        let pods = format!("{header}\np,500,64,1,460,V9|T1,LS,Pending,7,9,\nq,1,1,0,0,,BE,Running,8,9,8\n");
        let pods = read_text(read_pods, &pods).unwrap();
        assert_eq!(pods[0].models, ["V9", "T1"]);
        assert_eq!((pods[0].gpu_milli, pods[0].qos.as_str()), (460, "LS"));
        assert!(pods[1].models.is_empty());
    }

    #[test]
    fn a_wrong_row_names_line_column_and_value() {
        let head = "sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n";
        for (rows, expected) in [
            ("b,12x,1,0,\n", ":3: column cpu_milli: \"12x\" is not an integer"),
            ("b,1,-1,0,\n", ":3: column memory_mib: \"-1\" is below 0"),
            ("b,1,,0,\n", ":3: column memory_mib: \"\" is not an integer"),
            (
                "b,99999999999999999999,1,0,\n",
                ":3: column cpu_milli: \"99999999999999999999\" is out of range",
            ),
            ("b,1,9999999999999,0,\n", ":3: column memory_mib: \"9999999999999\" is more than 1099511627776"),
            ("b,1,1,2,\n", ":3: column model: \"\" is empty, but the node has GPUs"),
            ("b,1,1,0,T1\n", ":3: column model: \"T1\" is given, but the node has no GPU"),
            ("b,1,1,1,T 1\n", ":3: column model: \"T 1\" is not a value a Kubernetes label can have"),
            ("B_1,1,1,0,\n", ":3: column sn: \"B_1\" is not a name a Kubernetes object can have"),
            ("b,1,1,0,\na,1,1,0,\n", ":4: column sn: \"a\" stands on line 2 already"),
            ("b,1,1\n", ":3: 3 columns, expected 5"),
        ] {
            assert_eq!(read_text(read_nodes, &format!("{head}{rows}")).unwrap_err(), expected);
        }
        let header = POD_COLUMNS.join(",");
        for (row, expected) in [
            (
                "p,1,1,0,5,,LS,Running,0,1,0",
                ":2: column gpu_milli: \"5\" is a share of a GPU, but num_gpu is 0",
            ),
            (
                "p,1,1,1,0,,LS,Running,0,1,0",
                ":2: column gpu_milli: \"0\" is no share of a GPU, but num_gpu is not 0",
            ),
            (
                "p,1,1,2,5,,LS,Running,0,1,0",
                ":2: column gpu_milli: \"5\" must be 1000 when num_gpu is more than 1",
            ),
            ("p,1,1,1,1001,,LS,Running,0,1,0", ":2: column gpu_milli: \"1001\" is more than 1000"),
            (
                "p,1,1,1,5,A||B,LS,Running,0,1,0",
                ":2: column gpu_spec: \"A||B\" is not a list of GPU models separated by |",
            ),
            ("p,1,1,0,0,,LS,Running,soon,1,0", ":2: column creation_time: \"soon\" is not an integer"),
        ] {
            assert_eq!(read_text(read_pods, &format!("{header}\n{row}\n")).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_file_of_another_kind_is_refused_by_its_header() {
        for (text, expected) in [
            ("name,cpu\n", ":1: the header is \"name,cpu\", expected \"sn,cpu_milli,memory_mib,gpu,model\""),
            ("", ":1: empty, expected the header sn,cpu_milli,memory_mib,gpu,model"),
        ] {
            assert_eq!(read_text(read_nodes, text).unwrap_err(), expected);
        }
        let error = read_nodes(Path::new("/nonexistent/nodes.csv")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/nodes.csv: "), "{error}");
    }

    /// Reads the published trace if it is available: `PELLUCID_TRACES` names its directory or the parent directory, by
    /// default `../shared/traces`.
    #[test]
    fn the_published_trace_is_readable() {
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
        let folder = std::env::var_os("PELLUCID_TRACES").map_or_else(beside, PathBuf::from);
        let folder = Some(folder.join("openb")).filter(|below| below.is_dir()).unwrap_or(folder);
        if !folder.join("openb_pod_list_default.csv").is_file() {
            eprintln!("NOT TESTED: no trace in {}; set PELLUCID_TRACES to its folder", folder.display());
            return;
        }
        let nodes = read_nodes(&folder.join("openb_node_list_all_node.csv")).unwrap();
        let pods = read_pods(&folder.join("openb_pod_list_default.csv")).unwrap();
        assert_eq!((nodes.len(), pods.len()), (1523, 8152));
        assert_eq!(nodes.iter().map(|node| node.gpus).sum::<u64>(), 6212);
    }
}
