// Names on a canvas. They come from a trace and are not ours to trust: what would turn the direction of the text or break
// the line is left out, and no more of a name is measured than can be seen.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const MOST_CHARACTERS = 300;
const MOST_KEPT = 20_000;

export function plainName(name: string): string {
  return name.slice(0, MOST_CHARACTERS).replace(UNSEEN, " ");
}

const widths = new Map<string, number>(); // one font

/** As much of the name as fits, cut with "…"; empty where that is less than a letter. */
export function fitName(name: string, room: number, measure: (text: string) => number): string {
  const plain = plainName(name);
  let width = widths.get(plain);
  if (width === undefined) {
    if (widths.size >= MOST_KEPT) widths.clear();
    width = measure(plain);
    widths.set(plain, width);
  }
  if (width <= room) return plain;
  const letters = Math.floor((plain.length * room) / width) - 1;
  return letters < 1 ? "" : `${plain.slice(0, letters)}…`;
}
