// The parts of the first page. Its text and code are in site/home.md and README.md.
import { withBase } from 'vitepress';
import { defineComponent, h, ref, type VNode } from 'vue';
import graphiql from '../../../docs/images/graphiql.png';
import graphiqlDark from '../../../docs/images/graphiql-dark.png';
import inspect from '../../../docs/images/inspect.png';
import inspectDark from '../../../docs/images/inspect-dark.png';
import { data } from './home.data.mjs';

const KEYS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

/** An example for each part, as tabs of WAI-ARIA: arrow keys move between them. */
export const HeroExample = defineComponent(() => {
  const { tabs } = data;
  const shown = ref(0);
  const id = (kind: string, index: number) => `example-${kind}-${index}`;
  function move(event: KeyboardEvent): void {
    const step = KEYS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    shown.value = (shown.value + step + tabs.length) % tabs.length;
    document.getElementById(id('tab', shown.value))?.focus();
  }
  const tab = ({ name }: { name: string }, index: number) =>
    h(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: id('tab', index),
        'aria-selected': index === shown.value,
        'aria-controls': id('panel', index),
        tabindex: index === shown.value ? 0 : -1,
        onClick: () => (shown.value = index),
      },
      name,
    );
  const panel = ({ html }: { html: string }, index: number) =>
    h('div', {
      class: 'vp-doc',
      role: 'tabpanel',
      id: id('panel', index),
      'aria-labelledby': id('tab', index),
      hidden: index !== shown.value,
      innerHTML: html,
    });
  return () =>
    h('div', { class: 'hero-example' }, [
      h('div', { role: 'tablist', 'aria-label': 'Examples', onKeydown: move }, tabs.map(tab)),
      ...tabs.map(panel),
    ]);
});

/** The command that installs the package, with a button that copies it. */
export const InstallLine = defineComponent(() => {
  const status = ref('Copy');
  const copy = async () => {
    const copied = await navigator.clipboard?.writeText(data.install).then(
      () => true,
      () => false,
    );
    status.value = copied === true ? 'Copied' : 'Select the text';
    setTimeout(() => (status.value = 'Copy'), 2000);
  };
  return () =>
    h('p', { class: 'install-line' }, [
      h('code', data.install),
      h('button', { type: 'button', onClick: copy, 'aria-live': 'polite' }, status.value),
    ]);
});

interface Section {
  readonly title: string;
  readonly html: string;
}

interface Figure {
  readonly unit: string;
  readonly time: string;
  readonly other: string;
  readonly times: string;
}

const figure = ({ unit, time, other, times }: Figure) =>
  h('li', [
    h('strong', `${times}\u00d7`),
    h('span', [h('b', other), ` needs ${times} times the CPU time of espalier for ${unit} (${time}).`]),
  ]);

/** A picture for each colour scheme. Those of the page are below its first screen. */
function picture(alt: string, caption: (VNode | string)[], [light, dark]: string[], height: number): VNode {
  const image = (scheme: string, src?: string) =>
    h('img', { class: `${scheme}-only`, src, alt, width: 1200, height, loading: 'lazy' });
  return h('figure', [image('light', light), image('dark', dark), h('figcaption', caption)]);
}

const link = (path: string, text: string) => h('a', { href: withBase(path) }, text);

/** What comes between the title and the list of all guides. */
export const HomeParts = defineComponent(() => {
  const section = (id: string, { title, html }: Section) =>
    h('section', [h('h2', { id }, title), h('div', { innerHTML: html })]);
  return () =>
    h('div', { class: 'home-parts vp-doc' }, [
      h('ul', { class: 'home-figures' }, (data.figures as Figure[]).map(figure)),
      h('p', { class: 'home-note' }, [
        'CPU time of the server for one request or event, all measured in one run. ',
        link('/benchmarks#repeat-the-measurements', 'Repeat the measurements'),
        ', or read ',
        link('/benchmarks', 'all results'),
        ', including those in which others are faster.',
      ]),
      section('what-it-replaces', data.replaces),
      h('h2', { id: 'what-you-see' }, 'What you see'),
      h('div', { class: 'home-pictures' }, [
        picture(
          'GraphiQL in a browser: a query with variables, and its response',
          [link('/graphiql', 'GraphiQL'), ' is in the package and loads nothing from a CDN.'],
          [graphiql, graphiqlDark],
          720,
        ),
        picture(
          'The page of inspect: operations per second, latencies of each operation, errors',
          [link('/inspect', 'inspect'), ' shows what the process does now: rates, latencies, errors.'],
          [inspect, inspectDark],
          1515,
        ),
      ]),
      h('div', { class: 'home-columns' }, [
        section('who-should-not-use-it', data.notFor),
        section('what-0-x-means', data.versions),
      ]),
      h('h2', { id: 'all-guides' }, 'All guides'),
    ]);
});
