// Names on a canvas. They come from a trace and are not ours to trust: what would turn the direction of the text or break
// the line is left out, and no more of a name is measured than can be seen.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const MOST_CHARACTERS = 300;
const MOST_KEPT = 20_000;

export function plainName(name: string): string {
  return name.slice(0, MOST_CHARACTERS).replace(UNSEEN, " ");
}

/**
 * The part of a signature that tells kernels apart: "void at::native::reduce<4, float>(…)" → "reduce<4, float>". Templates
 * stay, as far as there is room; what has no arguments is taken as it is.
 */
export function shortName(name: string): string {
  if (!name.startsWith("void ") && !/::.*\(/.test(name)) return name;
  const head = name.startsWith("void ") ? name.slice(5) : name;
  let depth = 0;
  let begin = 0;
  let end = head.length;
  for (let i = 0; i < head.length; i++) {
    const letter = head[i];
    if (letter === "<") depth++;
    else if (letter === ">") depth--;
    else if (depth > 0) continue;
    else if (letter === "(" && i > 0 && !head.startsWith("(anonymous", i)) {
      end = i;
      break;
    } else if (letter === ":" && head[i + 1] === ":") begin = i + 2;
  }
  return head.slice(begin, end) || name;
}

const widths = new Map<string, number>(); // one font

/** As much of the name as fits, cut with "…"; empty where that is less than a letter. */
export function fitName(name: string, room: number, measure: (text: string) => number): string {
  const plain = shortName(plainName(name));
  let width = widths.get(plain);
  if (width === undefined) {
    if (widths.size >= MOST_KEPT) widths.clear();
    width = measure(plain);
    widths.set(plain, width);
  }
  if (width <= room) return plain;
  let letters = Math.floor((plain.length * room) / width) - 1;
  // Letters are not all as wide as the mean.
  for (; letters > 0; letters--) {
    const cut = `${plain.slice(0, letters)}…`;
    const known = widths.get(cut) ?? measure(cut);
    widths.set(cut, known);
    if (known <= room) return cut;
  }
  return "";
}
