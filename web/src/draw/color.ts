// Which colour a part of time has, everywhere on the page. The palette is Okabe and Ito's, told apart with the common
// kinds of colour blindness; a part is also always named in words beside its colour. The values are CSS variables, so
// that light and dark differ in report.css only.

const BY_WORD: [RegExp, string][] = [
  [/, not over$/, "--c-runtime"],
  [/^largest free piece$/, "--c-hidden"],
  [/^other free pieces$/, "--c-idle"],
  [/exposed|communication wait/, "--c-exposed"],
  [/hidden|overlap/, "--c-hidden"],
  [/communication|collective/, "--c-exposed"],
  [/host.?bound|cpu_op|cpu op/, "--c-host"],
  [/launch.?bound|runtime|driver/, "--c-runtime"],
  [/depend/, "--c-depend"],
  [/data.?(loader|wait)|^input$/, "--c-data"],
  [/sync/, "--c-sync"],
  [/idle/, "--c-idle"],
  [/memory.?set|memset|^set$/, "--c-set"],
  [/copy|memcpy/, "--c-copy"],
  [/forward/, "--c-compute"],
  [/backward/, "--c-copy"],
  [/optimizer/, "--c-sync"],
  [/zero_grad/, "--c-set"],
  [/evaluation/, "--c-depend"],
  [/checkpoint/, "--c-runtime"],
  [/^parameter$|^in blocks$/, "--c-compute"],
  [/^gradient$/, "--c-set"],
  [/^activation$/, "--c-copy"],
  [/^temporary$/, "--c-depend"],
  [/^workspace$/, "--c-runtime"],
  [/compute|kernel|busy|utilization/, "--c-compute"],
  [/unclassified/, "--c-unclassified"],
  [/unknown|other/, "--c-other"],
];
const SERIES = ["--c-sync", "--c-depend", "--c-set", "--c-host", "--c-runtime", "--c-data", "--c-copy", "--c-exposed"];

/** Idle parts are pale, each towards the color of its cause. */
export function partColor(name: string): string {
  const cause = /^idle: (.*)/.exec(name)?.[1];
  if (cause !== undefined) return `color-mix(in srgb, ${partColor(cause)} 45%, var(--c-idle))`;
  for (const [pattern, color] of BY_WORD) if (pattern.test(name)) return `var(${color})`;
  return "var(--c-other)";
}

/** Parts so light that dark text is read better on them. */
export function isPale(name: string): boolean {
  return /^idle|free piece|hidden|data.?(loader|wait)|^(memory.?)?set$/.test(name);
}

/** For series that are no part of time. */
export function seriesColor(index: number): string {
  return `var(${SERIES[index % SERIES.length]})`;
}

// Classes of slices as the server numbers them, in the timeline: a name and the color of each.
const CLASSES: [string, string][] = [
  ["host operator", "--c-host"],
  ["runtime call", "--c-runtime"],
  ["annotation", "--c-set"],
  ["Python function", "--c-data"],
  ["compute kernel", "--c-compute"],
  ["communication", "--c-exposed"],
  ["copy or fill", "--c-copy"],
  ["wait", "--c-sync"],
  ["other", "--c-other"],
];

export const CLASS_COUNT = CLASSES.length;

/** The server may send the number of a class or its name. */
export function className(of: number | string): string {
  return typeof of === "string" ? of : (CLASSES[of] ?? CLASSES[CLASS_COUNT - 1]!)[0];
}

/** The CSS variable that holds the color of a class. */
export function classVariable(of: number): string {
  return (CLASSES[of] ?? CLASSES[CLASS_COUNT - 1]!)[1];
}
