import { addPhoto } from './api.js';

const LIMIT = 10 * 1024 * 1024;
const tray = document.querySelector('#tray');
const drop = document.querySelector('#drop');
const picker = document.querySelector('#picker');
const card = document.querySelector('#upload').content.firstElementChild;
const waiting = [];
let running = 0;

/** Accepts pictures from the file picker, drag and drop and the clipboard. Three are sent at a time. */
export function acceptPictures(added) {
  const take = (files) => {
    for (const file of files) waiting.push(enlist(file, added));
    sendNext();
  };
  picker.onchange = () => {
    take(picker.files);
    picker.value = '';
  };
  addEventListener('paste', ({ clipboardData }) => take(clipboardData.files));

  let depth = 0;
  const hover = (event, change) => {
    if (!event.dataTransfer.types.includes('Files')) return;
    depth = Math.max(0, depth + change);
    drop.hidden = depth === 0;
  };
  addEventListener('dragenter', (event) => hover(event, 1));
  addEventListener('dragleave', (event) => hover(event, -1));
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    hover(event, -depth);
    take(event.dataTransfer.files);
  });
}

function sendNext() {
  while (running < 3 && waiting.length > 0) {
    running++;
    void waiting
      .shift()()
      .finally(() => {
        running--;
        sendNext();
      });
  }
}

/** Adds a card with progress and a cancel button to the tray. Returns a function that sends the file. */
function enlist(file, added) {
  const item = card.cloneNode(true);
  const stop = new AbortController();
  const progress = (share) => {
    item.querySelector('progress').value = share;
    say(item, share < 1 ? `${Math.floor(share * 100)} %` : 'Almost there');
  };
  item.querySelector('.name').textContent = file.name;
  item.querySelector('button').onclick = () => {
    stop.abort();
    item.remove();
  };
  say(item, 'Waiting');
  tray.append(item);

  return async () => {
    if (stop.signal.aborted) return;
    try {
      await check(file, item.querySelector('.thumb'));
      added(await addPhoto(file, { signal: stop.signal, progress }));
      item.classList.add('done');
      say(item, 'On the wall');
      setTimeout(() => item.remove(), 2500);
    } catch (error) {
      item.classList.add('failed');
      item.querySelector('button').ariaLabel = 'Dismiss';
      say(item, error.message);
    }
  };
}

function say(item, text) {
  item.querySelector('.state').textContent = text;
}

/** Rejects files that the server would refuse. The server checks the bytes in any case. */
async function check(file, thumb) {
  if (file.size > LIMIT) {
    throw new Error(`This file has ${Math.ceil(file.size / 1024 / 1024)} MB; the limit is 10 MB.`);
  }
  const image = new Image();
  image.src = URL.createObjectURL(file);
  try {
    await image.decode();
    thumb.append(image);
  } catch {
    throw new Error('This is not a picture that can be shown.');
  } finally {
    URL.revokeObjectURL(image.src);
  }
}
