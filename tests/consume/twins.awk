# SPDX-License-Identifier: Apache-2.0
# Finds what host and kernels have twice, and parameters of kernels in another order, for run_twins, which lists the rules.
# Use: awk -f lists.awk -f twins.awk <file>..., by paths that begin with host/, include/ or kernels/
function say(file, line, text) { print file ":" line ": " text }
# Text between a first bracket and the one that closes it.
function inside(text) { text = bracketed(text); return substr(text, 2, length(text) - 2) }
# A constant's or macro's name without what its side puts before it: kReduceBlock and CLUTCH_BLOCK of reduce are both "block".
function bare(name, stem,    text) {
  text = name
  sub(/^CLUTCH_/, "", text)
  if (text ~ /^k[A-Z]/) text = substr(text, 2)
  gsub(/_/, "", text)
  text = tolower(text)
  gsub(/_/, "", stem)
  if (index(text, stem) == 1 && length(text) > length(stem)) text = substr(text, length(stem) + 1)
  return text
}
# The stem of a path: kernels/eigh/group.clh, host/ops/eigh_plan.hpp and host/ops/eigh/launch.cpp are of eigh.
function stem_of(path) {
  sub(/^kernels\//, "", path)
  sub(/^host\/ops\//, "", path)
  sub(/[\/.].*/, "", path)
  sub(/_plan$/, "", path)
  return path
}

BEGIN {
  # Options that count things: WIDTH lanes, CLUTCH_BYTES bytes. Their values mean themselves.
  n = split("WIDTH DWIDTH LANES CLUTCH_OPERANDS CLUTCH_RANK_LANES CLUTCH_TILE CLUTCH_BYTES CLUTCH_ROWS CLUTCH_TOKENS CLUTCH_LOOP_LIMIT CLUTCH_BUNDLES CLUTCH_MATRICES " \
            "CLUTCH_N CLUTCH_N_MAX CLUTCH_KEYS CLUTCH_VECTORS CLUTCH_TILE_VECTORS", list, " ")
  for (i = 1; i <= n; ++i) is_count[list[i]] = 1
  phrases = "lays? out the same|says? the same|must match|the same as in|same as in|as in (kernels|common|host)\\/|(the|a) host.s [A-Z][a-z]|(the|a) kernel.s k[A-Z]"
}

FNR == 1 {
  file = FILENAME
  files[++file_count] = file
  side[file] = file ~ /^kernels\// ? (file ~ /\.h$/ ? "shared" : "kernel") : "host"
  goes_on = 0
}
$0 ~ phrases { say(file, FNR, "one side's comment repeats the other's text; share it by a header of kernels/") }
{
  line = $0
  sub(/\/\/.*/, "", line)
  where[file, ++lines[file]] = line
  if (line ~ /^#include "[^"]*\.h"/) { split(line, part, /"/); included[side[file], part[2]] = 1 }
}
side[file] == "shared" {
  rest = line
  if (line ~ /^#define /) {
    split(line, part, /[ (]/)
    shared[part[2]] = 1
  } else
    while (match(rest, /[A-Z][A-Z0-9_]+/)) { shared[substr(rest, RSTART, RLENGTH)] = 1; rest = substr(rest, RSTART + RLENGTH) }
  if (match(line, /clutch_[iu]32 +[a-z_]+;/)) { rest = substr(line, RSTART, RLENGTH - 1); sub(/.* /, "", rest); small[rest] = 1 }
}
side[file] == "kernel" {
  if (match(line, /^#define [A-Za-z0-9_]+ -?[0-9][0-9A-Fa-fxulL]* *$/)) {
    split(line, part, / +/)
    local_macro[file, part[2]] = FNR
    macro_value[file, part[2]] = part[3]
  }
  if (line ~ /^#undef /) { split(line, part, / +/); counter[part[2]] = 1 }
  name = ""
  if (match(line, /^[}] [A-Z][A-Za-z0-9]+;/)) name = substr(line, 3, RLENGTH - 3)
  if (match(line, /^(typedef )?struct [A-Z][A-Za-z0-9]+ *[{]/)) { name = line; sub(/^(typedef )?struct /, "", name); sub(/[ {].*/, "", name) }
  if (name != "") kernel_struct[name] = kernel_struct[name] " " file ":" FNR
}
side[file] == "host" {
  if (match(line, /(struct|class) [A-Z][A-Za-z0-9]+ *[:{]/)) {
    name = substr(line, RSTART, RLENGTH)
    sub(/^[a-z]+ /, "", name)
    sub(/ *[:{].*/, "", name)
    host_type[name] = file ":" FNR
  }
  rest = line
  while (match(rest, /k[A-Z][A-Za-z0-9]* = [0-9][0-9xA-Fa-f]*/)) {
    name = substr(rest, RSTART, RLENGTH)
    value = name
    sub(/ .*/, "", name)
    sub(/.* /, "", value)
    constants[++constant_count] = name " " value " " file " " FNR
    rest = substr(rest, RSTART + RLENGTH)
  }
  rest = line
  while (match(rest, /[A-Z][A-Z0-9_]+/)) { in_host[substr(rest, RSTART, RLENGTH)] = 1; rest = substr(rest, RSTART + RLENGTH) }
}

# Reads the options that a file of the host sets, and says which get a literal that means something.
function read_options(file,    i, j, text, from, count, part, name, value, at) {
  for (i = 1; i <= lines[file]; ++i) {
    text = where[file, i]
    if (text ~ /[{]"[A-Z][A-Z0-9_]*", *"-?[0-9]+"[}]/) {
      from = text
      while (match(from, /[{]"[A-Z][A-Z0-9_]*", *"-?[0-9]+"[}]/)) {
        split(substr(from, RSTART, RLENGTH), part, /"/)
        option[part[2]] = 1
        if (!(part[2] in is_count) && part[4] != "1") say(file, i, part[2] " is set to the literal " part[4])
        from = substr(from, RSTART + RLENGTH)
      }
    }
    if (text !~ /\.set\(/) continue
    for (j = i + 1; j <= i + 6; ++j) text = text "\n" where[file, j]
    while (match(text, /\.set\(/)) {
      at = i
      if (index(substr(text, 1, RSTART), "\n") > 0) break  # of a line below, whose turn comes
      text = substr(text, RSTART + 4)
      if (split_list(inside(text), part, "({[", ")}]") != 2) continue
      name = part[1]
      value = trim(part[2])
      if (!match(name, /"[A-Z][A-Z0-9_]*/)) continue
      name = substr(name, RSTART + 1, RLENGTH - 1)
      option[name] = 1
      if (name in is_count) continue
      if (value ~ /^-?[0-9]+$/ && value != "1") say(file, at, name " is set to the literal " value)
      if (value ~ /[?:] *-?[0-9]+ *($|[:)])/) say(file, at, name " is set to a literal by a condition")
    }
  }
}
# Says which comparisons of a kernel's file take literals, or names that no header gives both sides.
function read_comparisons(file,    i, text, both, name, value, before) {
  for (i = 1; i <= lines[file]; ++i) {
    text = where[file, i]
    while (match(text, /(args(\.|->))?[A-Za-z_][A-Za-z0-9_]* *(==|!=) *-?[A-Za-z0-9_]+/)) {
      both = substr(text, RSTART, RLENGTH)
      before = trim(substr(text, 1, RSTART - 1))
      before = substr(before, length(before))
      text = substr(text, RSTART + RLENGTH)
      name = both
      sub(/ *(==|!=).*/, "", name)
      value = both
      sub(/.*(==|!=) */, "", value)
      if (before != "" && index(".>%*/+-", before)) continue
      if (name in option || name ~ /^CLUTCH_TOTAL_OP/) {
        if (name in is_count) continue
        if (value ~ /^-?[0-9]/) say(file, i, name ", which the host sets, is compared with the literal " value)
        else if (value in option || value in counter) continue
        else if (!(value in shared)) say(file, i, name ", which the host sets, is compared with " value ", which no header of kernels/ defines")
        else if (!(value in in_host)) say(file, i, name " is compared with " value ", which the host does not name")
      } else {
        sub(/^args(\.|->)/, "", name)
        if (name in small && (name in taken || both ~ /^args/) && value ~ /^-?[0-9]/ && value != "0")
          say(file, i, "a member of args, " name ", is compared with the literal " value)
      }
    }
  }
}
# Local copies of members of args: `const int stage = args.stage`.
function read_copies(file,    i, text, name) {
  split("", taken)
  for (i = 1; i <= lines[file]; ++i) {
    text = where[file, i]
    while (match(text, /[a-z_]+ = args(\.|->)[a-z_]+/)) {
      name = substr(text, RSTART, RLENGTH)
      sub(/ .*/, "", name)
      taken[name] = 1
      text = substr(text, RSTART + RLENGTH)
    }
  }
}

# Macros of parameters, each variant by its number.
function read_macros(file,    i, text, name, body) {
  for (i = 1; i <= lines[file]; ++i) {
    text = where[file, i]
    if (text !~ /^#define CLUTCH_[A-Z_]*PARAMS|^#define [A-Z_]+_PARAMS|^#define CLUTCH_FLEX_(IN|OUT)/) continue
    while (text ~ /\\ *$/) { sub(/\\ *$/, " ", text); text = text where[file, ++i] }
    sub(/^#define /, "", text)
    match(text, /^[A-Z_]+/)
    name = substr(text, 1, RLENGTH)
    body = substr(text, RLENGTH + 1)
    sub(/^\([a-z_, ]*\)/, "", body)
    if (name ~ /(EXTRA_KERNEL|AFTER_KERNEL|ALL_KERNEL|MOD_KERNEL|TABLE|BUFFER_KERNEL|STRIDE|REDUCED)_PARAMS$/) continue
    variant[name, ++variants[name]] = body
  }
}
function expanded(text, number,    again, name, head, tail, deep) {
  for (again = 1; again && ++deep < 20;) {
    again = 0
    head = ""
    while (match(text, /[A-Z][A-Z0-9_]*(_PARAMS|_IN|_OUT)/)) {
      name = substr(text, RSTART, RLENGTH)
      tail = substr(text, RSTART + RLENGTH)
      head = head substr(text, 1, RSTART - 1)
      if (name in variants) {
        if (tail ~ /^\(/) tail = substr(tail, length(inside(tail)) + 3)
        head = head variant[name, number <= variants[name] ? number : variants[name]]
        again = 1
      } else
        head = head name
      text = tail
    }
    text = head text
  }
  return text
}
function check_order(file,    i, j, text, name, number, most, n, part, k, p, at, kind, order) {
  for (i = 1; i <= lines[file]; ++i) {
    if (where[file, i] !~ /^__kernel void /) continue
    text = where[file, i]
    for (j = i + 1; text !~ /\) *\{ *$/ && j <= lines[file]; ++j) text = text " " where[file, j]
    name = text
    sub(/^__kernel void /, "", name)
    sub(/\(.*/, "", name)
    text = inside(substr(text, index(text, "(")))
    for (number = 1; number <= 4; ++number) {
      p = expanded(text, number)
      gsub(/ CLUTCH_[A-Z_]+_PARAMS/, ",&", p)
      n = split_list(p, part, "({[", ")}]")
      at = 1
      for (k = 1; k <= n; ++k) {
        p = trim(part[k])
        sub(/^CLUTCH_PREDICATE,? */, "", p)
        if (p == "" || p ~ /^ulong [a-z0-9_]+_offset$/ || p ~ /##_offset$/) continue
        if (p ~ /(EXTRA_KERNEL|AFTER_KERNEL|ALL_KERNEL|MOD_KERNEL)_PARAMS/) kind = 5
        else if (p ~ /BUFFER_KERNEL_PARAMS/) { if (at > 1) kind = 1; else kind = 2 }
        else if (p ~ /TABLE_PARAMS/ || p ~ /^__global [^c]/) kind = 1
        else if (p ~ /^__global const/) kind = 2
        else if (p ~ /^CLUTCH_ARGS|STRIDE_PARAMS|REDUCED_PARAMS|SHAPE|^CLUTCH_CONCAT/) kind = 3
        else if (p ~ /^(ulong|long|uint|int) /) kind = at > 3 ? at : 3
        else kind = 4
        if (kind < at) {
          say(file, i, name ": '" p "' comes after " order[at] "; parameters are outputs, inputs, sizes, scalars, then those of printed functions")
          number = 4
          break
        }
        at = kind
        order[1] = "an output"; order[2] = "an input"; order[3] = "sizes"; order[4] = "a scalar"; order[5] = "those of printed functions"
      }
    }
  }
}

END {
  for (i = 1; i <= file_count; ++i) if (side[files[i]] == "host") read_options(files[i])
  for (i = 1; i <= file_count; ++i) if (side[files[i]] == "kernel") read_macros(files[i])
  for (i = 1; i <= file_count; ++i) {
    if (side[files[i]] == "shared") {
      name = substr(files[i], 9)
      if (!(("shared", name) in included)) {
        if (!(("host", name) in included)) say(files[i], 1, "no file of the host includes this header, so it is none that both sides share")
        if (!(("kernel", name) in included)) say(files[i], 1, "no kernel includes this header, so it is none that both sides share")
      }
    }
    if (side[files[i]] != "kernel") continue
    read_copies(files[i])
    read_comparisons(files[i])
    check_order(files[i])
  }
  for (name in kernel_struct)
    if (name in host_type) print host_type[name] ": " name " is a struct of" kernel_struct[name] ", too: share it by a header of kernels/, or name one otherwise"
  for (key in local_macro) {
    split(key, place, SUBSEP)
    stem = stem_of(place[1])
    for (i = 1; i <= constant_count; ++i) {
      split(constants[i], of, " ")
      if (stem != "common" && stem_of(of[3]) != stem) continue
      if (macro_value[key] == of[2] && bare(place[2], stem) == bare(of[1], stem_of(of[3])))
        say(of[3], of[4], of[1] " is " place[2] " of " place[1] ", too: share it by a header of kernels/")
    }
  }
}
