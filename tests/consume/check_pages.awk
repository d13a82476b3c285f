# SPDX-License-Identifier: Apache-2.0
# Prints what is wrong in pages of Markdown. Use: awk -f check_pages.awk <page>..., from the folder that their names start from
# Links: each to a page, from the folder of the page that has it, and to a heading of it. Lines of files: each as `symbol` (path:12) or `symbol` (path:12-20);
# the symbol stands in these lines. Tables of README.md: a cell has at most twelve words, code apart.
function dirname(path) { return match(path, /.*\//) ? substr(path, 1, RLENGTH) : "" }
function flat(path) { while (match(path, /[^\/.][^\/]*\/\.\.\//)) path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH); return path }
function there(path) { if (!(path in exists)) exists[path] = system("test -e '" path "'") == 0; return exists[path] }
function wrong(text) { print FILENAME ":" FNR ": " text }
function read_headings(page,    line, slug, code) {
  if (page in read_page) return
  read_page[page] = 1
  while ((getline line < page) > 0) {
    if (line ~ /^```/) code = !code
    if (code || line !~ /^#+ /) continue
    slug = tolower(line); sub(/^#+ /, "", slug); gsub(/[^a-z0-9 _-]/, "", slug); gsub(/ /, "-", slug)
    heading[page "#" slug] = 1
  }
  close(page)
}
function check_link(target,    at, page, part) {
  if (target ~ /^[a-z]+:/) return
  at = index(target, "#")
  part = at ? substr(target, at + 1) : ""
  page = at ? substr(target, 1, at - 1) : target
  page = page == "" ? FILENAME : flat(dirname(FILENAME) page)
  if (!there(page)) { wrong("links to " target ", which is not there"); return }
  if (part == "") return
  read_headings(page)
  if (!((page "#" part) in heading)) wrong("links to " target ", which has no such heading")
}
function check_lines(symbol, path, first, last,    n, line, found, elsewhere) {
  if (!there(path)) { wrong("there is no " path); return }
  while ((getline line < path) > 0) {
    ++n
    if (!index(line, symbol)) continue
    if (n >= first && n <= last) found = 1
    elsewhere = elsewhere " " n
  }
  close(path)
  if (last > n || first > last || first < 1) wrong(path " has " n " lines, not " first "-" last)
  else if (!found) wrong(symbol " does not stand at " path ":" first "-" last (elsewhere ? ", but at line" elsewhere : ""))
}
FNR == 1 { code = 0; before = "" }
/^```/ { code = !code }
code { before = ""; next }
{
  text = $0
  while (match(text, /\]\([^)]*\)/)) { target = substr(text, RSTART + 2, RLENGTH - 3); text = substr(text, RSTART + RLENGTH); check_link(target) }
  # A place may stand on the next line than its symbol.
  text = before " " $0
  gsub(/  +/, " ", text)
  own = length($0)
  while (match(text, /[A-Za-z0-9_.\/-]+\.(cpp|hpp|clh|cl|inc|awk|py|def):[0-9]+(-[0-9]+)?/)) {
    place = substr(text, RSTART, RLENGTH); head = substr(text, 1, RSTART - 1); text = substr(text, RSTART + RLENGTH)
    if (length(text) >= own) continue  # of the line before
    if (head !~ /`[^`]+` \($/) { wrong(place " stands without its symbol, as `symbol` (path:12)"); continue }
    sub(/` \($/, "", head); sub(/.*`/, "", head); sub(/\(\)$/, "", head)
    split(place, p, ":")
    parts = split(p[2], range, "-")
    check_lines(head, p[1], range[1] + 0, range[parts] + 0)
  }
  before = $0
}
FILENAME ~ /(^|\/)README\.md$/ && FILENAME !~ /(host|kernels)\// && /^\|/ {
  text = $0
  gsub(/\\\|/, "", text)
  cells = split(text, cell, "|")
  for (i = 1; i <= cells; ++i) {
    gsub(/`[^`]*`/, "", cell[i]); gsub(/\]\([^)]*\)/, "]", cell[i]); gsub(/[^A-Za-z0-9 ]/, " ", cell[i])
    if (split(cell[i], words, " ") > 12) { wrong("a cell has more than twelve words"); break }
  }
}
