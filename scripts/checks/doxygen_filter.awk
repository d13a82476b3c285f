# SPDX-License-Identifier: Apache-2.0
# For docs/Doxyfile: leaves the inline namespace out of names, and makes each labelled line of a contract ("/// Shapes: ...") a paragraph with that title.
# Doxygen takes every README.md for the main page, so that those of folders are no pages: links to them become their text.
{
  if (sub(/namespace clutch \{ inline namespace v0 \{/, "namespace clutch {")) inside = 1
  if (inside && /^\}\}+  \/\/ namespace clutch::v0/) sub(/^\}/, "")
  if (match($0, /^ *\/\/\/ [A-Z][A-Za-z ]*: /) && RLENGTH < 30) {
    begin = substr($0, 1, RLENGTH)
    rest = substr($0, RLENGTH + 1)
    indent = begin
    sub(/\/\/\/.*/, "", indent)
    label = begin
    sub(/^ *\/\/\/ /, "", label)
    sub(/: $/, "", label)
    print indent "/// @par " label
    $0 = indent "/// " rest
  }
  while (match($0, /\[[^]]*\]\((\.\.\/)*(host|kernels|examples)\/README\.md[^)]*\)/)) {
    text = substr($0, RSTART + 1, RLENGTH - 1)
    sub(/\].*/, "", text)
    $0 = substr($0, 1, RSTART - 1) text substr($0, RSTART + RLENGTH)
  }
  print
}
