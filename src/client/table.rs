//! Tables that fit the terminal: columns side by side, no borders, no word broken.
//!
//! A table of prose wraps its cells between words. A table of one line per row, such as a list, elides them with `…`.
//! When the columns do not fit, the widest ones become narrower first, those of identities last; where that is not enough,
//! columns that can be spared are left out.

use console::measure_text_width;

use super::out;

/// Spaces between two columns.
const GAP: usize = 2;
/// Elided columns become no narrower than this, unless their cells are shorter.
const NARROWEST: usize = 12;

/// A cell: its lines, cleaned of control characters.
pub(crate) struct Cell {
    lines: Vec<String>,
}

impl Cell {
    pub(crate) fn new(lines: Vec<String>) -> Self {
        Self { lines }
    }
}

/// A table. Its width is at most the terminal's.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
    /// Columns that are aligned to the right.
    numbers: Vec<usize>,
    /// Columns that stay whole as long as others can become narrower.
    whole: Vec<usize>,
    /// Columns that can be left out, the first one first.
    spare: Vec<usize>,
    is_elided: bool,
    width: usize,
}

impl Table {
    /// Returns an empty table whose cells are wrapped. The columns `numbers` are aligned to the right.
    pub(crate) fn new(header: &[&str], numbers: impl IntoIterator<Item = usize>) -> Self {
        Self {
            header: header.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
            numbers: numbers.into_iter().collect(),
            whole: Vec::new(),
            spare: Vec::new(),
            is_elided: false,
            width: out::width(),
        }
    }

    /// Gives each row one line: what does not fit is elided, in the columns `whole` last.
    pub(crate) fn elided(mut self, whole: impl IntoIterator<Item = usize>) -> Self {
        self.is_elided = true;
        self.whole = whole.into_iter().collect();
        self
    }

    /// Leaves these columns out where the table does not fit otherwise, the first one first.
    pub(crate) fn sparing(mut self, spare: impl IntoIterator<Item = usize>) -> Self {
        self.spare = spare.into_iter().collect();
        self
    }

    #[cfg(test)]
    fn fitting(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    pub(crate) fn add_row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the lines of the table, without spaces at their ends.
    pub(crate) fn text(&self) -> String {
        let columns = self.columns();
        let header = columns.iter().map(|(column, width)| vec![elided(&self.header[*column], *width)]);
        let mut lines = self.row(header.collect(), &columns);
        for row in &self.rows {
            let fitted = |(column, width): &(usize, usize)| {
                row.get(*column).map(|cell| self.fitted(cell, *width)).unwrap_or_default()
            };
            lines.extend(self.row(columns.iter().map(fitted).collect(), &columns));
        }
        lines.join("\n")
    }

    fn fitted(&self, cell: &Cell, width: usize) -> Vec<String> {
        match self.is_elided {
            true => vec![elided(&cell.lines.join(", "), width)],
            false => cell.lines.iter().flat_map(|line| wrapped(line, width)).collect(),
        }
    }

    /// Puts the cells of one row side by side.
    fn row(&self, cells: Vec<Vec<String>>, columns: &[(usize, usize)]) -> Vec<String> {
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let line = |at: usize| {
            let mut text = String::new();
            for (cell, (column, width)) in cells.iter().zip(columns) {
                let shown = cell.get(at).map_or("", String::as_str);
                let pad = " ".repeat(width.saturating_sub(measure_text_width(shown)));
                let is_number = self.numbers.contains(column);
                let (before, after) = if is_number { (pad.as_str(), "") } else { ("", pad.as_str()) };
                let gap = " ".repeat(if text.is_empty() { 1 } else { GAP });
                text += &format!("{gap}{before}{shown}{after}");
            }
            text.trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// Returns the columns that are shown with their widths: those of their longest cells, narrowed until all fit.
    fn columns(&self) -> Vec<(usize, usize)> {
        let mut shown: Vec<usize> = (0..self.header.len()).collect();
        let mut spare = self.spare.iter();
        loop {
            let room = self.width.saturating_sub(1 + GAP * shown.len().saturating_sub(1));
            let mut widths: Vec<usize> = shown.iter().map(|column| self.longest(*column)).collect();
            let floors: Vec<usize> = shown.iter().map(|column| self.least(*column)).collect();
            if floors.iter().sum::<usize>() > room
                && let Some(out) = spare.next()
            {
                shown.retain(|column| column != out);
                continue;
            }
            narrow(&mut widths, &floors, room);
            narrow(&mut widths, &vec![1; shown.len()], room);
            return shown.into_iter().zip(widths).collect();
        }
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }

    /// Returns the width at which a column is neither wrapped nor elided.
    fn longest(&self, column: usize) -> usize {
        let line = |cell: &Cell| match self.is_elided {
            true => measure_text_width(&cell.lines.join(", ")),
            false => cell.lines.iter().map(|line| measure_text_width(line)).max().unwrap_or_default(),
        };
        self.cells(column).map(line).fold(measure_text_width(&self.header[column]), usize::max)
    }

    /// Returns the least width at which a column can be read.
    fn least(&self, column: usize) -> usize {
        let header = measure_text_width(&self.header[column]);
        let word =
            |cell: &Cell| cell.lines.iter().flat_map(|line| line.split(' ')).map(measure_text_width).max();
        match (self.is_elided, self.whole.contains(&column)) {
            (false, _) => self.cells(column).filter_map(word).fold(header, usize::max),
            (true, true) => self.longest(column),
            (true, false) => self.longest(column).min(NARROWEST).max(header),
        }
    }
}

/// Takes from the widest columns until all fit into `room`, down to their floors.
fn narrow(widths: &mut [usize], floors: &[usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        let can_give = (0..widths.len()).filter(|column| widths[*column] > floors[*column]);
        match can_give.max_by_key(|column| (widths[*column], *column)) {
            Some(column) => widths[column] -= 1,
            None => return,
        }
    }
}

/// Shortens a text to a width, with `…` at its end: after a whole word where that leaves at least half of the room.
pub(crate) fn elided(text: &str, width: usize) -> String {
    if measure_text_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if measure_text_width(&kept) >= width {
            kept.pop();
            break;
        }
    }
    let is_between_words = text[kept.len()..].starts_with(' ');
    let cut = kept.rfind(' ').filter(|at| !is_between_words && *at * 2 >= width).unwrap_or(kept.len());
    format!("{}…", kept[..cut].trim_end_matches([' ', ',']))
}

/// Breaks a text into lines between words. A word that is wider than a line is elided.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let lines = broken(text, width);
    lines.into_iter().map(|line| elided(&line, width)).collect()
}

/// Breaks a text into lines between words. A word that is wider than a line has one of its own and stays whole.
pub(crate) fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && measure_text_width(line) + 1 + measure_text_width(word) > width {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(header: &[&str], rows: &[&[&str]], width: usize) -> Table {
        let mut table = Table::new(header, [0]).fitting(width);
        for row in rows {
            table.add_row(row.iter().map(|text| Cell::new(vec![(*text).to_owned()])));
        }
        table
    }

    #[test]
    fn prose_is_wrapped_between_words_and_never_inside_them() {
        let rows: &[&[&str]] =
            &[&["7", "node(s) didn't have free ports for the requested pod ports", "edge-01"]];
        let text = table(&["N", "REASON", "NODE"], rows, 40).text();
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        for word in rows[0][1].split(' ') {
            assert!(text.contains(word), "no {word} in\n{text}");
        }
        assert!(!text.contains('…'), "{text}");
    }

    #[test]
    fn a_list_has_a_line_per_row_and_elides_what_is_not_an_identity() {
        let rows: &[&[&str]] = &[
            &["7", "team-a/Deployment/a-rather-long-name", "Request less, or add nodes that have more"],
            &["1000", "team-b/Job/x", "Wait"],
        ];
        let text = table(&["PODS", "OWNER", "REMEDY"], rows, 64).elided([0, 1]).text();
        let expected = " PODS  OWNER                                 REMEDY\n    \
                        7  team-a/Deployment/a-rather-long-name  Request less, or…\n \
                        1000  team-b/Job/x                          Wait";
        assert_eq!(text, expected);
        let tight = table(&["PODS", "OWNER", "REMEDY"], rows, 40).elided([0, 1]).text();
        assert!(tight.lines().all(|line| measure_text_width(line) <= 40), "{tight}");
    }

    #[test]
    fn columns_that_can_be_spared_are_left_out_where_there_is_no_room() {
        let rows: &[&[&str]] =
            &[&["7", "team-a/Deployment/a-rather-long-name", "cpu=4, memory=8Gi", "NotNow"]];
        let of = |width| {
            table(&["PODS", "OWNER", "REQUESTS", "OUTLOOK"], rows, width).elided([0, 1, 3]).sparing([2])
        };
        assert!(of(68).text().contains("REQUESTS") && of(68).text().contains("cpu=4"), "{}", of(68).text());
        let expected = " PODS  OWNER                                 OUTLOOK\n    \
                        7  team-a/Deployment/a-rather-long-name  NotNow";
        assert_eq!(of(60).text(), expected);
        assert!(of(30).text().lines().all(|line| measure_text_width(line) <= 30), "{}", of(30).text());
    }

    #[test]
    fn what_is_elided_ends_behind_a_word_where_there_is_one() {
        assert_eq!(elided("short", 5), "short");
        assert_eq!(elided("one two three", 9), "one two…");
        assert_eq!(elided("one two three", 8), "one two…");
        assert_eq!(elided("a-name-of-one-word", 8), "a-name-…");
        assert_eq!(broken("one two three", 7), ["one two", "three"]);
    }
}
