import { addMessage, loadMessages, type Message, watchMessages } from './api.ts';
import './style.css';

const form = document.querySelector('form') as HTMLFormElement;
const list = document.querySelector('ul') as HTMLUListElement;
const alert = document.querySelector('[role=alert]') as HTMLElement;
const state = document.querySelector('#state') as HTMLElement;
const button = document.querySelector('button') as HTMLButtonElement;
const shown = new Map<string, HTMLElement>();

form.addEventListener('submit', (event) => {
  event.preventDefault();
  void submit();
});

async function submit(): Promise<void> {
  alert.textContent = '';
  button.disabled = true;
  button.textContent = 'Sending';
  try {
    await addMessage(new FormData(form), (part) => {
      button.textContent = `Sending ${Math.floor(part * 100)} %`;
    });
    form.reset();
  } catch (error) {
    alert.textContent = messageOf(error);
  } finally {
    button.disabled = false;
    button.textContent = 'Send';
  }
}

// Subscribe first and load second: messages that arrive in between are shown once.
watchMessages(show, () => void showAll());

async function showAll(): Promise<void> {
  try {
    const messages = await loadMessages();
    for (const message of messages.toReversed()) show(message);
    state.textContent = shown.size === 0 ? 'No message yet. Write the first one.' : '';
  } catch (error) {
    state.textContent = messageOf(error);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Adds a message at the top. Text is set as text, so that messages cannot contain HTML. */
function show({ id, author, text, picture, createdAt }: Message): void {
  if (shown.has(id)) return;
  const item = document.createElement('li');
  const head = document.createElement('strong');
  head.textContent = `${author.name}, ${new Date(createdAt).toLocaleString()}`;
  const body = document.createElement('p');
  body.textContent = text;
  item.append(head, body);
  if (picture !== null) {
    const image = document.createElement('img');
    image.src = picture;
    image.alt = `Picture of ${author.name}`;
    item.append(image);
  }
  shown.set(id, item);
  list.prepend(item);
  state.textContent = '';
}
