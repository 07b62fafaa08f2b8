// The one custom element of the page: the bar behind a share in a table cell. No script stands behind it.
import type { JSX } from "preact";

declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "meter-bar": JSX.HTMLAttributes<HTMLElement>;
    }
  }
}
