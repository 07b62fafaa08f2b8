// Pointer, wheel and keys, turned into what the viewer does.
import type { Hover } from "./tip";
import type { Viewer } from "./viewer";
import { clamped, stretchLength, timeOf } from "./view";

const CLICK_PX = 4;

type Listen = <E extends Event>(target: EventTarget, name: string, does: (event: E) => void, options?: AddEventListenerOptions) => void;

function listening(): { listen: Listen; stop: () => void } {
  const abort = new AbortController();
  const listen: Listen = (target, name, does, options) =>
    target.addEventListener(name, does as EventListener, { ...options, signal: abort.signal });
  return { listen, stop: () => abort.abort() };
}

function dragging(element: HTMLElement, event: PointerEvent, moved: (event: PointerEvent) => void, ended: (event: PointerEvent) => void): void {
  element.setPointerCapture(event.pointerId);
  const abort = new AbortController();
  element.addEventListener("pointermove", moved, { signal: abort.signal });
  for (const name of ["pointerup", "pointercancel"] as const) {
    element.addEventListener(
      name,
      (end) => {
        abort.abort();
        ended(end);
      },
      { signal: abort.signal },
    );
  }
}

export function interact(
  viewer: Viewer,
  surface: { scroll: HTMLElement; overlay: HTMLCanvasElement; ruler: HTMLCanvasElement; minimap: HTMLCanvasElement },
  hover: (of: Hover | null) => void,
  toSearch: () => void,
): () => void {
  const { listen, stop } = listening();
  const { overlay, ruler, minimap, scroll } = surface;
  const time = (x: number) => timeOf(viewer.state.view, viewer.width, x);

  const under = (x: number, y: number): Hover | null => {
    const at = viewer.frame.hit(x, y);
    const band = at < 0 ? viewer.bandAt(y) : undefined;
    const beside = band?.lane?.kind === "counter" || band?.kind === "rank";
    return at >= 0 || beside ? { at, x, y } : null;
  };

  const choose = (x: number, y: number) => {
    const at = viewer.frame.hit(x, y);
    viewer.trail = [];
    if (at < 0) return viewer.clear();
    const tile = viewer.frame.tile[at]!;
    const i = viewer.frame.at[at]!;
    const lane = viewer.laneOf(tile.lane);
    if (lane === undefined) return;
    if (viewer.frame.isSingle(at)) return viewer.chooseAt({ rank: lane.rank, slice: tile.slice[i]! }, y);
    // Several in one: nearer, until they are told apart.
    const { left, right } = viewer.frame.wholeOf(at, viewer.width);
    const middle = time((left + right) / 2);
    const length = stretchLength(viewer.state.view) / 8;
    viewer.show({ from: middle - length / 2, to: middle + length / 2 });
  };

  const selectRange = (element: HTMLElement, event: PointerEvent, allLanes: boolean) => {
    const [x, y] = [event.offsetX, event.offsetY];
    const at = time(x);
    const range = (move: PointerEvent) => {
      const other = Math.min(Math.max(0, time(move.offsetX)), viewer.index.end);
      const lanes = allLanes ? [] : viewer.lanesBetween(y, move.offsetY);
      return { from: Math.max(0, Math.min(at, other)), to: Math.max(at, other), lanes };
    };
    dragging(
      element,
      event,
      (move) => viewer.selectRange(range(move), false),
      (end) => {
        if (Math.abs(end.offsetX - x) < CLICK_PX) return viewer.selectRange(null, true);
        viewer.selectRange(range(end), true);
      },
    );
  };

  listen<PointerEvent>(overlay, "pointerdown", (event) => {
    if (event.button !== 0) return;
    scroll.focus({ preventScroll: true });
    if (event.shiftKey) return selectRange(overlay, event, false);
    const [x, y] = [event.offsetX, event.offsetY];
    const { view } = viewer.state;
    const top = scroll.scrollTop;
    let dragged = false;
    dragging(
      overlay,
      event,
      (move) => {
        dragged ||= Math.hypot(move.offsetX - x, move.offsetY - y) >= CLICK_PX;
        if (!dragged) return;
        hover(null);
        const by = (stretchLength(view) / viewer.width) * (x - move.offsetX);
        viewer.show({ from: view.from + by, to: view.to + by });
        scroll.scrollTop = top + (y - move.offsetY);
      },
      (end) => {
        if (!dragged && end.type === "pointerup") choose(x, y);
      },
    );
  });
  listen<PointerEvent>(overlay, "pointermove", (event) => {
    viewer.cursor = event.offsetX;
    hover(event.buttons === 0 ? under(event.offsetX, event.offsetY) : null);
    viewer.draw();
  });
  listen<PointerEvent>(overlay, "pointerleave", () => {
    viewer.cursor = null;
    hover(null);
    viewer.draw();
  });
  listen<MouseEvent>(overlay, "dblclick", () => viewer.fit());
  listen<PointerEvent>(ruler, "pointerdown", (event) => event.button === 0 && selectRange(ruler, event, true));

  const toMinimap = (event: PointerEvent) => {
    const middle = (event.offsetX / Math.max(1, viewer.width)) * viewer.index.end;
    const half = stretchLength(viewer.state.view) / 2;
    viewer.show({ from: middle - half, to: middle + half });
  };
  listen<PointerEvent>(minimap, "pointerdown", (event) => {
    if (event.button !== 0) return;
    toMinimap(event);
    dragging(minimap, event, toMinimap, () => undefined);
  });

  const wheel = (event: WheelEvent) => {
    const pixels = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      viewer.zoom(Math.exp(Math.max(-1, Math.min(1, (event.deltaY * pixels) / 300))), event.offsetX);
      return;
    }
    const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (Math.abs(across) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return; // the lanes scroll
    event.preventDefault();
    viewer.pan((across * pixels) / Math.max(1, viewer.width));
  };
  for (const canvas of [overlay, ruler, minimap]) listen<WheelEvent>(canvas, "wheel", wheel, { passive: false });
  listen(scroll, "scroll", () => viewer.scrolled());
  listen<KeyboardEvent>(window, "keydown", (event) => pressed(viewer, surface.scroll, toSearch, event));
  return stop;
}

function pressed(viewer: Viewer, scroll: HTMLElement, toSearch: () => void, event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT|DIALOG)$/.test(target.tagName)) return;
  if (document.querySelector("dialog[open]") !== null) return;
  const onControl = /^(BUTTON|A|SUMMARY)$/.test(target.tagName);
  const keys: Record<string, () => void> = {
    w: () => viewer.zoom(1 / 1.4),
    s: () => viewer.zoom(1.4),
    a: () => viewer.pan(-0.15),
    d: () => viewer.pan(0.15),
    f: () => viewer.fit(),
    m: () => viewer.mark(),
    c: () => viewer.showPath(!viewer.state.path),
    n: () => viewer.goFound(viewer.foundAt + 1),
    p: () => viewer.goFound(viewer.foundAt - 1),
    "/": toSearch,
    escape: () => viewer.clear(),
    arrowleft: () => viewer.pan(-0.15),
    arrowright: () => viewer.pan(0.15),
    arrowup: () => (scroll.scrollTop -= 54),
    arrowdown: () => (scroll.scrollTop += 54),
    home: () => viewer.show({ from: 0, to: stretchLength(viewer.state.view) }),
    end: () => viewer.show(clamped({ from: viewer.index.end - stretchLength(viewer.state.view), to: viewer.index.end }, viewer.index.end)),
    ...(onControl ? {} : { enter: () => viewer.follow(event.shiftKey) }),
  };
  const does = keys[event.key.toLowerCase()];
  if (does === undefined) return;
  event.preventDefault();
  does();
}

