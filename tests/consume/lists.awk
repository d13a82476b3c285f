# SPDX-License-Identifier: Apache-2.0
# Functions of headers.awk and twins.awk, which are run with this file before them: white space, brackets, lists.
function trim(text) { gsub(/[ \t\n]+/, " ", text); sub(/^ /, "", text); sub(/ $/, "", text); return text }
# Text from an opening bracket to the one that closes it; empty if none does.
function bracketed(text,    i, c, open) {
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (c == "(") ++open
    if (c == ")" && --open == 0) return substr(text, 1, i)
  }
  return ""
}
# Parts of a list between commas that stand in none of these brackets.
function split_list(text, parts, opening, closing,    i, c, open, n, part) {
  n = 0; part = ""; open = 0
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (index(opening, c)) ++open
    if (index(closing, c)) --open
    if (c == "," && open == 0) { parts[++n] = part; part = "" } else part = part c
  }
  parts[++n] = part
  return n
}
