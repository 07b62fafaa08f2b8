// The colors of the canvases, read from the page's style, so that light and dark are told in one place. A rectangle's
// color is its class's, paler where less of its stretch is filled.
import { CLASS_COUNT, classVariable, partColor } from "../draw/color";

export type Rgb = [number, number, number];

export interface Palette {
  background: string;
  ink: string;
  soft: string;
  line: string;
  tint: string;
  link: string;
  meter: string;
  mark: string;
  path: string; // of the critical path
  counter: string;
  /** Of a part of time by its name, such as a phase. */
  colorOf: (name: string) => string;
  /** [class * 16 + fill / 16] */
  rgb: Rgb[];
  css: string[];
  /** Is white text read better on the class's color? */
  whiteText: boolean[];
}

function rgbOf(css: string, context: CanvasRenderingContext2D): Rgb {
  context.fillStyle = "#000";
  context.fillStyle = css; // the canvas turns any color into #rrggbb
  const hex = /^#([0-9a-f]{6})$/.exec(String(context.fillStyle))?.[1] ?? "888888";
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Rgb;
}

function luminance([r, g, b]: Rgb): number {
  const linear = (value: number) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

export function readPalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const variable = (name: string) => style.getPropertyValue(name).trim();
  const context = document.createElement("canvas").getContext("2d")!;
  const background = rgbOf(variable("--bg"), context);
  const rgb: Rgb[] = [];
  const whiteText: boolean[] = [];
  for (let of = 0; of < CLASS_COUNT; of++) {
    const color = rgbOf(variable(classVariable(of)), context);
    whiteText.push(luminance(color) < 0.19);
    for (let sixteenth = 0; sixteenth < 16; sixteenth++) {
      const share = 0.3 + 0.7 * (sixteenth / 15);
      rgb.push(color.map((part, i) => Math.round(background[i]! + (part - background[i]!) * share)) as Rgb);
    }
  }
  const named = new Map<string, string>();
  const colorOf = (name: string) => {
    const known = named.get(name) ?? variable(/--[\w-]+/.exec(partColor(name))![0]);
    named.set(name, known);
    return known;
  };
  return {
    background: variable("--bg"),
    ink: variable("--ink"),
    soft: variable("--soft"),
    line: variable("--line"),
    tint: variable("--tint"),
    link: variable("--link"),
    meter: variable("--meter"),
    mark: variable("--bad"),
    path: variable("--path"),
    counter: variable("--c-runtime"),
    colorOf,
    rgb,
    css: rgb.map(([r, g, b]) => `rgb(${r} ${g} ${b})`),
    whiteText,
  };
}

export function shadeOf(kind: number, fill: number): number {
  return Math.min(kind, CLASS_COUNT - 1) * 16 + (fill >> 4);
}
