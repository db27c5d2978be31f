import type { StoredEvent } from './store.ts';

type Page = readonly StoredEvent[] | undefined;

const LIFETIME_MILLISECONDS = 1000;
const MAX_PAGES = 64;

/**
 * Shares reads of the history. After a deployment, many clients continue after the same event within a short
 * time. The events after an id never change, so a page stays correct.
 */
export class PageCache {
  readonly #load: (after: string) => Promise<Page>;
  readonly #pages = new Map<string, Promise<Page>>();

  constructor(load: (after: string) => Promise<Page>) {
    this.#load = load;
  }

  read(after: string): Promise<Page> {
    const cached = this.#pages.get(after);
    if (cached !== undefined) return cached;
    const page = this.#load(after);
    this.#pages.set(after, page);
    const [oldest] = this.#pages.keys();
    if (oldest !== undefined && this.#pages.size > MAX_PAGES) this.#pages.delete(oldest);
    const remove = (): void => {
      if (this.#pages.get(after) === page) this.#pages.delete(after);
    };
    page.then((events) => {
      // An empty page is outdated with the next event.
      if (events === undefined || events.length === 0) remove();
      else setTimeout(remove, LIFETIME_MILLISECONDS).unref();
    }, remove);
    return page;
  }
}
