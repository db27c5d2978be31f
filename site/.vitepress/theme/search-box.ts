// The search box of the site, instead of the one of VitePress, whose list options contain links (WAI-ARIA forbids that).
// Results are links in a modal dialog: the browser keeps the focus inside, and closes it with Escape.
import { computed, defineComponent, h, onMounted, ref, shallowRef } from 'vue';
import { type Found, loadSearch, type Search } from './search.ts';

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

export default defineComponent({
  emits: ['close'],
  setup(_props, { emit }) {
    const dialog = ref<HTMLDialogElement>();
    const text = ref('');
    const search = shallowRef<Search>();
    const results = computed(() => search.value?.(text.value) ?? []);
    const status = computed(() => {
      if (search.value === undefined || text.value.trim() === '') return '';
      return results.value.length === 0 ? `No results for "${text.value}"` : '';
    });

    onMounted(async () => {
      dialog.value?.showModal();
      search.value = await loadSearch();
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

    const result = ({ href, title, parents, excerpt }: Found) =>
      h('li', { key: href }, [
        h('a', { href, onClick: close }, [
          parents.length > 0 ? h('span', { class: 'page', innerHTML: parents.join(' › ') }) : undefined,
          h('span', { class: 'title', innerHTML: title }),
          h(
            'span',
            { class: 'excerpt' },
            excerpt.map((piece, index) => (index % 2 === 0 ? piece : h('mark', piece))),
          ),
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
