// Goes from state to state of the served page: every state is an address, so back and forward are the browser's own.
import { useEffect, useState } from "preact/hooks";
import { formatRoute, parseRoute } from "../data/route";
import type { Route } from "../data/route";

const listeners = new Set<() => void>();

export function currentRoute(): Route {
  return parseRoute(location.hash) ?? { view: "", params: {} };
}

/** `replace`: a state that is only on the way (panning) gets no entry of its own in the history. */
export function navigate(route: Route, replace = false): void {
  const to = formatRoute(route);
  if (to === location.hash) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  for (const listener of listeners) listener();
}

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const changed = () => setRoute(currentRoute());
    listeners.add(changed);
    addEventListener("hashchange", changed);
    addEventListener("popstate", changed);
    return () => {
      listeners.delete(changed);
      removeEventListener("hashchange", changed);
      removeEventListener("popstate", changed);
    };
  }, []);
  return route;
}
