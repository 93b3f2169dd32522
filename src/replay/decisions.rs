//! Writes the node of each pod to a file. Two runs made the same decisions exactly when their files are equal.

use std::io::{self, Write};

/// Writes one line per pod in the given order: name, tab, and node or `-`.
pub fn write_decisions<'a>(
    out: &mut impl Write,
    decisions: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> io::Result<()> {
    for (pod, node) in decisions {
        writeln!(out, "{pod}\t{}", node.unwrap_or("-"))?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_pod() {
        let mut out = Vec::new();
        write_decisions(&mut out, [("p-1", Some("n-9")), ("p-0", None)]).unwrap();
        assert_eq!(out, b"p-1\tn-9\np-0\t-\n");
    }
}
