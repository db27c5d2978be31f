// The search box of the site, instead of the one of VitePress, whose list options contain links (WAI-ARIA forbids that).
// Results are links in a modal dialog: the browser keeps the focus inside, and closes it with Escape.
import localSearchIndex from '@localSearchIndex';
import MiniSearch, { type SearchResult } from 'minisearch';
import { computed, defineComponent, h, onMounted, ref, shallowRef } from 'vue';

const MAX_RESULTS = 16;
const SETTINGS = {
  fields: ['title', 'titles', 'text'],
  storeFields: ['title', 'titles'],
  searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } },
};
const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

export default defineComponent({
  emits: ['close'],
  setup(_props, { emit }) {
    const dialog = ref<HTMLDialogElement>();
    const text = ref('');
    const index = shallowRef<MiniSearch>();
    const results = computed(() => (index.value?.search(text.value) ?? []).slice(0, MAX_RESULTS));
    const status = computed(() => {
      if (index.value === undefined || text.value.trim() === '') return '';
      return results.value.length === 0 ? `No results for "${text.value}"` : '';
    });

    onMounted(async () => {
      dialog.value?.showModal();
      const { default: json } = await localSearchIndex.root();
      index.value = MiniSearch.loadJSON(json, SETTINGS);
    });

    const close = () => dialog.value?.close();

    function openFirst(event: Event): void {
      event.preventDefault();
      dialog.value?.querySelector('a')?.click();
    }

    /** Arrow keys move the focus between the input and the results. */
    function move(event: KeyboardEvent): void {
      const step = STEPS[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const stops = [...(dialog.value?.querySelectorAll<HTMLElement>('input, a') ?? [])];
      const place = stops.indexOf(document.activeElement as HTMLElement);
      stops.at((place + step) % stops.length)?.focus();
    }

    const field = () =>
      h('form', { role: 'search', onSubmit: openFirst }, [
        h('input', {
          type: 'search',
          'aria-label': 'Search the documentation',
          placeholder: 'Search',
          autocomplete: 'off',
          autofocus: true,
          maxlength: 64,
          value: text.value,
          onInput: (event: Event) => {
            text.value = (event.target as HTMLInputElement).value;
          },
        }),
        h('button', { type: 'button', onClick: close }, 'Close'),
      ]);

    // The index has titles as HTML, in which code keeps its entities.
    const result = ({ id, title, titles }: SearchResult) =>
      h('li', { key: id }, [
        h('a', { href: id, onClick: close }, [
          h('span', { class: 'page', innerHTML: titles.join(' › ') }),
          h('span', { class: 'title', innerHTML: title }),
        ]),
      ]);

    return () =>
      h(
        'dialog',
        {
          ref: dialog,
          class: 'search-box',
          'aria-label': 'Search',
          onClose: () => emit('close'),
          onKeydown: move,
          // A click on the dialog itself is one on its backdrop.
          onClick: (event: Event) => event.target === dialog.value && close(),
        },
        h('div', { class: 'content' }, [
          field(),
          h('p', { role: 'status' }, status.value),
          results.value.length > 0 ? h('ul', results.value.map(result)) : undefined,
        ]),
      );
  },
});
