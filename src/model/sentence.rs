//! Puts texts of others at the end of a sentence.

/// Returns a text as the end of a sentence: with a full stop, unless it has one already, as messages of the API server
/// and of kube-scheduler's grammar do.
pub fn ended(text: impl Into<String>) -> String {
    let mut text = text.into();
    if !text.ends_with('.') {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_with_one_full_stop() {
        assert_eq!(ended("no victims found"), "no victims found.");
        assert_eq!(
            ended("0/1 nodes are available: 1 Too many pods."),
            "0/1 nodes are available: 1 Too many pods."
        );
    }
}
