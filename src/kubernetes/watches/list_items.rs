//! Takes a list apart while it arrives: hands out the raw text of one item after the other.
//!
//! A page of a list can be hundreds of megabytes. Of it never more is held here than one item and what stands around
//! the items. The text is not validated: whoever reads an item does that.

use serde::Deserialize;

/// Bytes around the items, at most.
const HEAD_BYTES: usize = 1 << 20;

/// Why a text is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    /// An item is too large.
    #[error("an object has more than {0} bytes")]
    TooLarge(usize),
    /// The text ended early.
    #[error("the list broke off")]
    BrokeOff,
    /// Something else.
    #[error("not a list: {0}")]
    NoList(String),
    /// An item cannot be read.
    #[error("an object in the list is no JSON: {0}")]
    Item(String),
}

/// What stands around the items.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    /// The version of the list.
    pub(crate) resource_version: String,
    /// Where the next page begins; empty at the end.
    pub(crate) r#continue: String,
}

/// A list of which a part has arrived.
pub(crate) struct ListItems {
    /// Everything but the items.
    head: Vec<u8>,
    /// The beginning of an item whose end has not arrived.
    item: Vec<u8>,
    most: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    in_items: bool,
    /// The last text at the top, as far as it matters.
    key: Vec<u8>,
    /// Whether the value that follows is that of `items`.
    is_items: bool,
    /// Bytes so far.
    pub(crate) bytes: usize,
    /// Items so far.
    pub(crate) count: usize,
}

impl ListItems {
    /// Begins a list whose items have at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            head: Vec::new(),
            item: Vec::new(),
            most,
            depth: 0,
            in_string: false,
            is_escaped: false,
            in_items: false,
            key: Vec::new(),
            is_items: false,
            bytes: 0,
            count: 0,
        }
    }

    /// Takes the next part of the text. Calls `each` with every item that is complete now.
    pub(crate) fn feed(
        &mut self,
        part: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        self.bytes += part.len();
        // What lies before `from` is dealt with, what lies before `at` is looked at.
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

    /// Ends the list and returns what stood around the items.
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

    /// Returns where to go on inside of a text, or behind it.
    fn skip_string(&mut self, part: &[u8], at: usize) -> usize {
        if self.is_escaped {
            self.is_escaped = false;
            return at + 1;
        }
        let rest = &part[at..];
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        if self.depth == 1 {
            let seen = &rest[..end.unwrap_or(rest.len())];
            // One byte more than `items` is enough to tell.
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

    /// Keeps what belongs to an item that is not complete, or to no item.
    fn keep(&mut self, text: &[u8]) -> Result<(), ListError> {
        let (buffer, most) =
            if self.in_items { (&mut self.item, self.most) } else { (&mut self.head, HEAD_BYTES) };
        if buffer.len() + text.len() > most {
            return Err(ListError::TooLarge(most));
        }
        buffer.extend_from_slice(text);
        Ok(())
    }

    /// Hands out an item, of which this is the last part.
    fn end_item(
        &mut self,
        text: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        let mut give = |item: &[u8]| match item.trim_ascii() {
            // Between the brackets of an empty list.
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
