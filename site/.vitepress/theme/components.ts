import { useData } from 'vitepress';
import { defineComponent, h, useId } from 'vue';
import { data as example } from './example.data.mjs';

interface Version {
  readonly name: string;
  readonly path: string;
}

/** The version of this build, and all versions of the site, newest first. */
function useVersions(): { current: string; all: readonly Version[] } {
  return useData().theme.value['versions'];
}

/** The example of README.md next to the title of the site. */
export const HeroExample = defineComponent(() => {
  const attributes = { tabindex: 0, role: 'group', 'aria-label': 'An example' };
  return () => h('div', { class: 'hero-example language-ts', ...attributes, innerHTML: example });
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
