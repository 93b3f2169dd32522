//! The `pellucid` binary.
fn main() {}
