# SPDX-License-Identifier: Apache-2.0
# Prints what the public headers declare, a line each, for run_headers. Use: awk -f lists.awk -f headers.awk <header>...
#   field <file:line> <struct> <name> <type>          of structs whose names end in Options
#   function <file:line> <name> <return type>         outside of classes and of detail; names without clutch and v0
#   parameters <file:line> <name> <name>...           the names of a function's parameters
#   holds <struct>                                    a struct with tensors among its members
#   enum <file:line> <name> <underlying type> <enumerator>...
#   macro <file:line> <line>                          a macro that declares functions: its lines with names, and its last one
function space(    i, name) {
  for (i = 1; i <= depth; ++i)
    if (kind[i] == "namespace" && names[i] != "clutch" && names[i] != "v0") name = name names[i] "::"
  return name
}
function inside(what,    i) { for (i = 1; i <= depth; ++i) if (kind[i] == what) return 1; return 0 }
function is_hidden(    i) { for (i = 1; i <= depth; ++i) if (names[i] == "detail" || kind[i] == "body") return 1; return 0 }
# Parts of a list, without an empty one at its end.
function parts_of(text, parts,    n) { n = split_list(text, parts, "(<{[", ")>}]"); return trim(parts[n]) == "" ? n - 1 : n }
function last_word(text) { text = trim(text); return match(text, /[A-Za-z_][A-Za-z0-9_]*$/) ? substr(text, RSTART) : "" }
function field(text,    parts, n, i, type, name) {
  n = parts_of(text, parts)
  for (i = 1; i <= n; ++i) {
    sub(/=.*/, "", parts[i])
    name = last_word(parts[i])
    if (i == 1) { type = trim(parts[1]); type = trim(substr(type, 1, length(type) - length(name))) }
    if (name == "" || type == "") continue
    if (type ~ /^(Tensor|std::vector<Tensor>)$/ || type in holding) { if (!(names[depth] in holding)) { holding[names[depth]] = 1; print "holds " names[depth] } }
    if (names[depth] ~ /Options$/) print "field", where, names[depth], name, type
  }
}
function declaration(text,    head, list, name, type, parts, n, i, line) {
  text = trim(text)
  if (text == "" || is_hidden()) return
  sub(/^(public|private|protected): */, "", text)
  # Only what has no brackets of its own stands between template's.
  while (sub(/^template <[^<>]*(<[^<>]*>[^<>]*)*> /, "", text)) {}
  while (match(text, /^requires ?\(/)) { text = trim(substr(text, length(bracketed(substr(text, index(text, "(")))) + index(text, "("))) }
  sub(/^requires [A-Za-z_:]+<[^<>]*> /, "", text)
  if (kind[depth] == "struct") { if (text !~ /\(/ && text !~ /^(friend|using|static|enum|struct|class) /) field(text); return }
  if (inside("struct") || inside("class") || text !~ /\(/ || text ~ /^(using|friend|class|struct|enum|extern) /) return
  while (sub(/^(CLUTCH_API|inline|constexpr|consteval|\[\[[a-z]+\]\]) /, "", text)) {}
  head = substr(text, 1, index(text, "(") - 1)
  name = last_word(head)
  if (name == "" || head ~ /operator/) { if (head !~ /operator/) return; match(head, /operator.*/); name = trim(substr(head, RSTART)); gsub(/ /, "", name) }
  type = trim(substr(head, 1, length(head) - length(name)))
  if (head ~ /operator/) { type = head; sub(/ ?operator.*/, "", type) }
  if (type == "" || type ~ /=/) return
  gsub(/ /, "", type)
  print "function", where, space() name, type
  list = bracketed(substr(text, index(text, "(")))
  n = parts_of(substr(list, 2, length(list) - 2), parts)
  line = "parameters " where " " space() name
  for (i = 1; i <= n; ++i) { sub(/=.*/, "", parts[i]); sub(/\[[a-zA-Z]*\]/, "", parts[i]); gsub(/\(&([a-z_]+)\)/, " &", parts[i]); gsub(/[()]/, "", parts[i]); line = line " " last_word(parts[i]) }
  print line
}
function begin_scope(text,    name) {
  text = trim(text); ++depth
  sub(/^template <[^<>]*(<[^<>]*>[^<>]*)*> /, "", text)
  if (match(text, /namespace [A-Za-z_0-9]+$/)) { kind[depth] = "namespace"; names[depth] = last_word(text) }
  else if (text ~ /^enum /) { kind[depth] = "enum"; names[depth] = text }
  else if (text ~ /^(struct|class) [^(]*$/) {
    kind[depth] = text ~ /^struct/ ? "struct" : "class"
    sub(/ :.*/, "", text); sub(/<.*/, "", text); names[depth] = last_word(text)
  } else { --depth; declaration(text); ++depth; kind[depth] = "body"; names[depth] = "" }
}
function end_scope(text,    parts, n, i, line, name, under) {
  if (kind[depth] == "enum" && !inside("body")) {
    n = parts_of(text, parts)
    name = names[depth]; sub(/^enum (class )?/, "", name)
    under = name ~ /:/ ? name : ": int"; sub(/^[^:]*: */, "", under); sub(/ *:.*/, "", name)
    line = "enum " where " " space() name " " under
    for (i = 1; i <= n; ++i) { sub(/=.*/, "", parts[i]); line = line " " trim(parts[i]) }
    print line
  }
  if (depth > 0) --depth
}
FNR == 1 { depth = 0; open = 0; statement = ""; defining = 0 }
{ where = FILENAME ":" FNR; line = $0 }
defining || /^#define/ {
  if ((line ~ /\(/ && line ~ /name/) || (defining && line !~ /\\$/)) print "macro", where, trim(line)
  defining = line ~ /\\$/
  next
}
/^#/ { next }
{
  gsub(/"([^"\\]|\\.)*"/, "\"\"", line); gsub(/'[^']'/, "0", line); sub(/\/\/.*/, "", line)
  for (i = 1; i <= length(line); ++i) {
    c = substr(line, i, 1)
    if (c == "(") ++open
    if (c == ")") --open
    if (open > 0) { statement = statement c; continue }
    # A value in braces, not a scope.
    if (c == "{" && statement ~ /= *$/) { initial = 1; statement = statement c; continue }
    if (initial > 0) { if (c == "{") ++initial; if (c == "}") --initial; statement = statement c; continue }
    if (c == "{") { begin_scope(statement); statement = "" }
    else if (c == "}") { end_scope(statement); statement = "" }
    else if (c == ";") { declaration(statement); statement = "" }
    else if (c == ":" && statement ~ /^ *(public|private|protected)$/) statement = ""
    else statement = statement c
  }
  statement = statement " "
}
