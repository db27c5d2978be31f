import { useData, useRoute, withBase } from 'vitepress';
import { computed, defineComponent, h, useId } from 'vue';

interface Version {
  readonly name: string;
  readonly path: string;
}

/** The version of this build, and all versions of the site, newest first. */
function useVersions(): { current: string; all: readonly Version[] } {
  return useData().theme.value['versions'];
}

interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly items?: readonly SidebarItem[];
}

/** Names of pages in other documentations. */
const OTHER_NAMES: readonly (readonly [words: RegExp, link: string])[] = [
  [/auth|login|jwt|session/, '/authentication'],
  [/start|intro|guide|quick|install|learn/, '/tutorial'],
  [/api|reference|options|config/, '/api/'],
  [/upload|file/, '/uploads'],
  [/static|spa/, '/static-files'],
  [/socket|realtime|live|sse/, '/subscriptions'],
  [/migrat|upgrade|apollo|yoga/, '/migrating'],
  [/deploy|docker|kube|prod/, '/deployment'],
  [/perf|bench/, '/benchmarks'],
];
const START: readonly SidebarItem[] = [
  { text: 'Tutorial', link: '/tutorial' },
  { text: 'All guides', link: '/' },
  { text: 'API reference', link: '/api/' },
];

/** The page for addresses without one: the pages with similar names, the search, and where to begin. */
export const NotFound = defineComponent(() => {
  const { theme } = useData();
  const route = useRoute();
  const similar = computed(() => {
    const path = route.path.toLowerCase();
    const words = path.split(/[^a-z0-9]+/).filter((word) => word.length > 2 && word !== 'html');
    const pages = (theme.value['sidebar'] as readonly SidebarItem[]).flatMap(({ items = [] }) => items);
    const named = pages.filter(({ text, link = '' }) =>
      words.some((word) => `${link} ${text}`.toLowerCase().includes(word)),
    );
    const others = OTHER_NAMES.filter(([pattern]) => pattern.test(path)).map(([, link]) => link);
    return [...new Set([...pages.filter(({ link }) => others.includes(link ?? '')), ...named])].slice(0, 5);
  });
  const openSearch = () => document.querySelector<HTMLElement>('.DocSearch-Button')?.click();
  const list = (items: readonly SidebarItem[]) =>
    h(
      'ul',
      items.map(({ text, link = '/' }) => h('li', h('a', { href: withBase(link) }, text))),
    );
  return () =>
    h('div', { class: 'not-found vp-doc' }, [
      h('p', { class: 'code' }, '404'),
      h('h1', 'There is no page at this address'),
      h('p', h('code', route.path)),
      similar.value.length > 0 ? [h('h2', 'Perhaps you mean'), list(similar.value)] : undefined,
      h('h2', 'Or begin here'),
      list(START),
      h('button', { type: 'button', onClick: openSearch }, 'Search the documentation'),
    ]);
});

/** A menu that opens another version of the site. */
export const VersionMenu = defineComponent({
  props: { screenMenu: Boolean },
  setup() {
    const { current, all } = useVersions();
    const id = useId();
    const open = (event: Event) => location.assign((event.target as HTMLSelectElement).value);
    const option = ({ name, path }: Version) =>
      h('option', { value: path, selected: name === current }, name);
    return () =>
      h('span', { class: 'version-menu' }, [
        h('label', { for: id, class: 'visually-hidden' }, 'Version of the documentation'),
        h('select', { id, onChange: open }, all.map(option)),
      ]);
  },
});

/** A line above the pages of an older version. */
export const OlderVersion = defineComponent(() => {
  const { current, all } = useVersions();
  const [newest] = all;
  if (newest === undefined || newest.name === current) return () => undefined;
  const link = h('a', { href: newest.path, target: '_self' }, `Read the documentation of ${newest.name}.`);
  const text = `This page describes version ${current}. `;
  return () => h('aside', { class: 'older-version', 'aria-label': 'Older version' }, [text, link]);
});
