# SPDX-License-Identifier: Apache-2.0
# Prints the doc comments that are walls of prose, for run_headers. Use: awk -f contracts.awk <header>...
# A label is one to three words, the first with a capital letter, and a colon, at the beginning of a line: "Errors:", "Captured sums:". Further lines of its fact
# are indented by two more spaces. Lines without a label are prose, with the indented ones that follow them; at most four of them stand in a row. A fact has at
# most six lines, and its first line no second label.
function end_prose() { if (prose > 4) print FILENAME ":" first ": " prose " lines in a row without a label; at most four may be"; prose = 0 }
function end_fact() { if (fact > 6) print FILENAME ":" first ": " fact " lines of one label; at most six may be"; fact = 0 }
function end_all() { end_prose(); end_fact() }
FNR == 1 { prose = fact = 0 }
!/^ *\/\/\/( |$)/ { end_all(); next }
{ text = $0; sub(/^ *\/\/\/ ?/, "", text) }
text ~ /^[A-Z][A-Za-z-]*( [A-Za-z0-9+]+)?( [A-Za-z0-9+]+)?:( |$)/ {
  end_all()
  ++labels; first = FNR; fact = 1
  if (text ~ /[.] (Accuracy|Determinism|Dtypes|Empty|Errors|In place|Memory|Scratch|Shapes|Source|Stream): /) print FILENAME ":" FNR ": two labels in one line"
  next
}
fact && text ~ /^  / { ++fact; next }
{ end_fact(); if (!prose++) first = FNR }
END { if (labels < 300) print "hardly a label was found: this test no longer finds them" }
