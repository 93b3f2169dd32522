//! The build script finds the commit that `/version` names.

use std::process::Command;

use super::source::root;

#[path = "../../build.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main and what it prints are cargo's")]
mod build;

#[test]
fn the_commit_of_a_checkout_is_found_and_a_folder_in_it_has_none() {
    let said = Command::new("git").arg("-C").arg(root()).args(["log", "-1", "--format=%H"]).output();
    let Some(said) = said.ok().filter(|output| output.status.success()) else {
        println!("\n*** DID NOT RUN: there is no git, or this is no checkout ***\n");
        return;
    };
    let head = String::from_utf8(said.stdout).unwrap();
    assert_eq!(build::commit_of(&root()).as_deref(), Some(head.trim()));
    assert_eq!(
        build::commit_of(&root().join("src")),
        None,
        "a copy within another checkout is not that checkout"
    );
}
