# SPDX-License-Identifier: Apache-2.0
# Prints where files use words that the list of run_words retires. Use: awk -f words.awk words <file>..., by paths from the source folder
# A line is split into its comment, its text in quotes and the code that is left.
function boundary(word) { return "(^|[^A-Za-z0-9_])(" word ")([^A-Za-z0-9_]|$)" }
function take(text, at, length_of) { code = code " " substr(text, 1, at - 1); return substr(text, at + length_of) }
# Sets code, errors and comment. Raw strings and block comments may go on over lines.
function split_line(text,    mark) {
  code = errors = comment = ""
  while (text != "") {
    if (raw != "") {
      if (!index(text, raw)) { errors = errors " " text; return }
      errors = errors " " substr(text, 1, index(text, raw) - 1); text = substr(text, index(text, raw) + length(raw)); raw = ""
    } else if (block) {
      if (!index(text, "*/")) { comment = comment " " text; return }
      comment = comment " " substr(text, 1, index(text, "*/") - 1); text = substr(text, index(text, "*/") + 2); block = 0
    } else if (!match(text, /"|'|\/\/|\/\*/)) {
      code = code " " text; return
    } else {
      mark = substr(text, RSTART, RLENGTH)
      if (mark == "//") { comment = comment " " take(text, RSTART, 2); return }
      if (mark == "/*") { text = take(text, RSTART, 2); block = 1 }
      else if (mark == "'") text = take(text, RSTART, match(substr(text, RSTART), /^'(\\.|[^\\'])[^']*'/) ? RLENGTH : 1)
      else if (substr(text, 1, RSTART) ~ /(^|[^A-Za-z0-9_])R"$/) { text = take(text, RSTART, 1); raw = ")" substr(text, 1, index(text, "(") - 1) "\""; text = substr(text, index(text, "(") + 1) }
      else {
        text = take(text, RSTART, 1)
        match(text, /^([^"\\]|\\.)*/)
        errors = errors " " substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 2)
      }
    }
  }
}
FILENAME ~ /(^|\/)words$/ {
  if (/^#/) next
  if (split($0, cell, "\t") != 5) { print FILENAME ":" FNR ": a row has five columns"; next }
  ++rows; prefix[rows] = cell[1]; part[rows] = cell[2]; say[rows] = cell[3]; word[rows] = boundary(cell[4])
  if (cell[2] !~ /^(errors|comments|code|all)$/) print FILENAME ":" FNR ": there is no part " cell[2]
  next
}
FNR == 1 {
  raw = ""; block = 0; here = 0
  for (i = 1; i <= rows; ++i) if (index(FILENAME, prefix[i]) == 1) mine[++here] = i
}
here {
  line = $0
  split_line(line)
  gsub(/`[^`]*`/, "", comment)
  for (i = 1; i <= here; ++i) {
    row = mine[i]
    text = part[row] == "errors" ? errors : part[row] == "comments" ? comment : part[row] == "code" ? code : line
    if (match(text, word[row])) { found = substr(text, RSTART, RLENGTH); gsub(/^[^A-Za-z]+|[^A-Za-z:)]+$/, "", found); print FILENAME ":" FNR ": \"" found "\": say " say[row] }
  }
}
