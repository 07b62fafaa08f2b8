// Hands a trace to Perfetto's page in a tab of its own: an extra for who is online. That page says PONG when it is there;
// before the button is pressed nothing is asked of it, and the trace goes from tab to tab within the browser.
const PAGE = "https://ui.perfetto.dev";
const PING_MS = 100;
const PATIENCE_MS = 30_000;

/** Called by a press of a button, or the browser would open no tab. `file`: is asked for meanwhile. */
export async function openInPerfetto(title: string, file: () => Promise<ArrayBuffer>): Promise<void> {
  const tab = window.open(PAGE);
  if (tab === null) throw new Error("The browser opened no tab for Perfetto: does it block pop-ups?");
  try {
    const [buffer] = await Promise.all([file(), ready(tab)]);
    tab.postMessage({ perfetto: { buffer, title } }, PAGE, [buffer]);
  } catch (error) {
    tab.close();
    throw error;
  }
}

function ready(tab: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const ping = setInterval(() => tab.postMessage("PING", PAGE), PING_MS);
    const done = (end: () => void) => {
      clearInterval(ping);
      clearTimeout(patience);
      window.removeEventListener("message", heard);
      end();
    };
    const heard = (event: MessageEvent) => {
      if (event.source === tab && event.origin === PAGE && event.data === "PONG") done(resolve);
    };
    const patience = setTimeout(() => done(() => reject(new Error("ui.perfetto.dev does not answer: it needs the internet"))), PATIENCE_MS);
    window.addEventListener("message", heard);
  });
}
