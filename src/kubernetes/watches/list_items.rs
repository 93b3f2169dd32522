//! Splits a JSON list into its items while it arrives, and hands out the raw text of each.
//!
//! A page of a list can have hundreds of megabytes. Only one item and the text around the items are held at a time.
//! The text is not validated: the reader of an item does that.

use serde::Deserialize;

/// Maximum size of the text around the items, in bytes.
const HEAD_BYTES: usize = 1 << 20;

/// Why a list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    /// An item, or the text around the items, is larger than this many bytes.
    #[error("an object has more than {0} bytes")]
    TooLarge(usize),
    /// The text ended early.
    #[error("the list broke off")]
    BrokeOff,
    /// The text is no list, for this reason.
    #[error("not a list: {0}")]
    NoList(String),
    /// An item cannot be parsed.
    #[error("an object in the list is no JSON: {0}")]
    Item(String),
}

/// `metadata` of a list.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    /// `resourceVersion` of the list.
    pub(crate) resource_version: String,
    /// `continue` token of the next page; empty on the last page.
    pub(crate) r#continue: String,
}

/// A list that has arrived in part.
#[derive(Default)]
pub(crate) struct ListItems {
    /// The text around the items.
    head: Vec<u8>,
    /// The start of an item whose end has not arrived.
    item: Vec<u8>,
    most: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    in_items: bool,
    /// The start of the last string at the top level.
    key: Vec<u8>,
    /// Whether the next value is that of `items`.
    is_items: bool,
    /// Bytes received so far.
    pub(crate) bytes: usize,
    /// Items handed out so far.
    pub(crate) count: usize,
}

impl ListItems {
    /// Starts a list whose items have at most `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Processes the next part of the text. Calls `each` with every item that is now complete. Fails when the text is
    /// no list, an item is too large, or `each` fails.
    pub(crate) fn feed(
        &mut self,
        part: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        self.bytes += part.len();
        // Everything before `from` is processed, everything before `at` is scanned.
        let (mut from, mut at) = (0, 0);
        while at < part.len() {
            if self.in_string {
                at = self.skip_string(part, at);
                continue;
            }
            match part[at] {
                b'"' => {
                    self.in_string = true;
                    self.key.clear();
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth == 2 && self.is_items && part[at] == b'[' {
                        self.keep(&part[from..=at])?;
                        (self.in_items, from) = (true, at + 1);
                    }
                }
                b'}' | b']' => {
                    self.depth =
                        self.depth.checked_sub(1).ok_or_else(|| Self::no_list("a bracket too many"))?;
                    if self.in_items && self.depth == 1 {
                        self.end_item(&part[from..at], &mut each)?;
                        (self.in_items, self.is_items, from) = (false, false, at);
                    }
                }
                b',' if self.in_items && self.depth == 2 => {
                    self.end_item(&part[from..at], &mut each)?;
                    from = at + 1;
                }
                b',' if self.depth == 1 => self.is_items = false,
                b':' if self.depth == 1 => self.is_items = self.key == b"items",
                _ => {}
            }
            at += 1;
        }
        self.keep(&part[from..])
    }

    /// Ends the list and returns its metadata. Fails when the text is incomplete or has no version.
    pub(crate) fn finish(self) -> Result<ListMeta, ListError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            metadata: ListMeta,
        }
        if self.depth > 0 || self.in_string {
            return Err(ListError::BrokeOff);
        }
        match serde_json::from_slice::<Head>(&self.head) {
            Ok(head) if head.metadata.resource_version.is_empty() => Err(Self::no_list("no resourceVersion")),
            Ok(head) => Ok(head.metadata),
            Err(error) => Err(Self::no_list(&error.to_string())),
        }
    }

    fn no_list(why: &str) -> ListError {
        ListError::NoList(why.into())
    }

    /// Skips a string, or its part that has arrived. Returns where to continue.
    fn skip_string(&mut self, part: &[u8], at: usize) -> usize {
        if self.is_escaped {
            self.is_escaped = false;
            return at + 1;
        }
        let rest = &part[at..];
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        if self.depth == 1 {
            let seen = &rest[..end.unwrap_or(rest.len())];
            // One byte more than `items` has is enough to tell them apart.
            let room = 6_usize.saturating_sub(self.key.len());
            self.key.extend_from_slice(&seen[..seen.len().min(room)]);
        }
        let Some(end) = end else { return part.len() };
        match rest[end] {
            b'"' => self.in_string = false,
            _ => self.is_escaped = true,
        }
        at + end + 1
    }

    /// Stores text of an incomplete item, or text around the items.
    fn keep(&mut self, text: &[u8]) -> Result<(), ListError> {
        let (buffer, most) =
            if self.in_items { (&mut self.item, self.most) } else { (&mut self.head, HEAD_BYTES) };
        if buffer.len() + text.len() > most {
            return Err(ListError::TooLarge(most));
        }
        buffer.extend_from_slice(text);
        Ok(())
    }

    /// Hands out an item; `text` is its last part.
    fn end_item(
        &mut self,
        text: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        let mut give = |item: &[u8]| match item.trim_ascii() {
            // An empty list has nothing between its brackets.
            [] => Ok(0),
            item => each(item).map(|()| 1),
        };
        self.count += if self.item.is_empty() {
            give(text)?
        } else {
            self.keep(text)?;
            give(&self.item)?
        };
        self.item.clear();
        Ok(())
    }
}

#[cfg(test)]
#[path = "list_items_tests.rs"]
mod tests;
