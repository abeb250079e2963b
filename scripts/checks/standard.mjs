// A file includes the standard headers whose names it uses, itself or by way of the project's headers: the builds here also
// see them precompiled (scripts/cmake/precompiled.cmake), where a missing one would not be noticed.
import { includedFiles } from '../lib/included-files.mjs';
import { isCpp } from '../lib/source-files.mjs';

/** header -> what it alone declares, of what is precompiled */
const names = {
  algorithm:
    'all_of any_of none_of find_if count_if copy_n fill fill_n sort stable_sort partial_sort nth_element reverse rotate unique remove_if lower_bound upper_bound binary_search clamp max_element min_element minmax_element transform ranges::sort ranges::find ranges::all_of ranges::any_of ranges::none_of ranges::find_if ranges::fill ranges::copy ranges::reverse ranges::equal ranges::count ranges::contains',
  array: 'array to_array',
  atomic: 'atomic atomic_flag atomic_thread_fence',
  bit: 'bit_cast popcount countl_zero countr_zero bit_ceil bit_floor bit_width has_single_bit rotl rotr endian',
  charconv: 'from_chars to_chars from_chars_result to_chars_result chars_format',
  chrono: 'chrono',
  cmath:
    'sqrt exp log log1p expm1 sin cos tan tanh sinh cosh asin acos atan atan2 floor ceil round trunc nearbyint rint lrint llrint fmod remainder isnan isinf isfinite signbit copysign fma erf ldexp frexp pow hypot lround llround scalbn nextafter',
  exception: 'exception_ptr current_exception rethrow_exception make_exception_ptr',
  filesystem: 'filesystem',
  functional: 'function plus multiplies minus less_equal greater_equal bit_and bit_or bit_xor not_fn bind_front',
  limits: 'numeric_limits',
  map: 'map multimap',
  memory: 'unique_ptr shared_ptr weak_ptr make_unique make_shared enable_shared_from_this',
  mutex: 'mutex lock_guard unique_lock scoped_lock once_flag call_once recursive_mutex',
  numeric: 'accumulate iota inner_product partial_sum reduce gcd lcm midpoint exclusive_scan inclusive_scan',
  optional: 'optional nullopt make_optional',
  set: 'set multiset',
  span: 'span as_bytes as_writable_bytes dynamic_extent',
  string: 'string to_string stoi stol stoll stod stof',
  string_view: 'string_view',
  tuple: 'tuple tie make_tuple forward_as_tuple apply',
  unordered_map: 'unordered_map unordered_multimap',
  vector: 'vector',
};
const headerOf = new Map(
  Object.entries(names).flatMap(([header, list]) => list.split(' ').map((name) => [name, header])),
);
/** header -> others that bring it, as the standard says */
const implied = { string_view: ['string'] };

const withoutComments = (text) =>
  text.replace(/\/\/.*|\/\*[^]*?\*\/|"(?:[^"\\\n]|\\.)*"/g, (match) => (match[0] === '"' ? '""' : ' '));

export function check(files, read) {
  const problems = [];
  const headers = new Map();
  const standard = (path) => {
    if (!headers.has(path))
      headers.set(
        path,
        [...read(path).matchAll(/^[ \t]*#[ \t]*include[ \t]*<([^>]+)>/gm)].map((match) => match[1]),
      );
    return headers.get(path);
  };
  for (const path of files.filter(
    (name) => isCpp(name) && /^(src-native|providers|test\/native)\/.*\.(cpp|h)$/.test(name),
  )) {
    const used = new Set(
      [...withoutComments(read(path)).matchAll(/\bstd::((?:ranges::)?\w+)/g)].map((match) => headerOf.get(match[1])),
    );
    used.delete(undefined);
    const seen = new Set([...includedFiles(path, read)].flatMap(standard));
    for (const header of used) {
      if (![header, ...(implied[header] ?? [])].some((name) => seen.has(name)))
        problems.push(`${path}: <${header}> is used and not included`);
    }
  }
  return problems;
}
