import { ADDED, countVisitors, photos, VISITORS } from './api.js';
import { follow } from './live.js';
import { acceptPictures } from './uploads.js';
import { openViewer } from './viewer.js';

const PAGE = 60;
const wall = document.querySelector('#wall');
const older = document.querySelector('#older');
const trouble = document.querySelector('#trouble');
const live = document.querySelector('#live');
const tile = document.querySelector('#tile').content.firstElementChild;
const ago = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });

/** Inserts a picture, newest first. The list, the subscription and an upload may all deliver the same picture. */
function show(photo, fresh = false) {
  if (document.getElementById(photo.id)) return;
  const item = tile.cloneNode(true);
  const image = item.querySelector('img');
  item.id = photo.id;
  item.photo = photo;
  item.classList.toggle('fresh', fresh);
  item.style.setProperty('--ratio', Math.min(3, Math.max(0.5, photo.width / photo.height)).toFixed(4));
  item.querySelector('.title').textContent = photo.title;
  item.querySelector('time').dateTime = photo.addedAt;
  item.querySelector('time').textContent = when(photo.addedAt);
  image.alt = photo.title;
  image.onerror = () => {
    item.classList.add('broken');
    item.querySelector('.title').textContent = `“${photo.title}” cannot be shown`;
  };
  image.src = photo.url;
  item.querySelector('button').onclick = () => item.classList.contains('broken') || openViewer(item);
  if (fresh) setTimeout(() => item.classList.remove('fresh'), 6000);
  // Ids begin with the time, so their order is that of the wall.
  wall.insertBefore(item, [...wall.children].find((other) => other.id < photo.id) ?? null);
  document.querySelector('#empty').hidden = true;
}

/** Loads pictures again that failed while the server was not reachable. */
function retryBroken() {
  for (const item of wall.querySelectorAll('.broken')) {
    const image = item.querySelector('img');
    item.classList.remove('broken');
    item.querySelector('.title').textContent = item.photo.title;
    image.removeAttribute('src');
    image.src = item.photo.url;
  }
}

function when(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  for (const [unit, size] of [
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ]) {
    if (-seconds >= size * 30 && unit === 'day') return new Date(time).toLocaleDateString();
    if (-seconds >= size) return ago.format(Math.round(seconds / size), unit);
  }
  return 'just now';
}

async function load(before) {
  try {
    const page = await photos(PAGE, before);
    const news = wall.children.length > 0 && before === undefined;
    // No picture of a whole page is known: the tab missed more than a page, so the wall starts again.
    if (news && page.length === PAGE && !page.some(({ id }) => document.getElementById(id)))
      wall.replaceChildren();
    for (const photo of page) show(photo, news);
    if (before !== undefined || !news) older.hidden = page.length < PAGE;
    document.querySelector('#empty').hidden = wall.children.length > 0;
    trouble.hidden = true;
  } catch (error) {
    trouble.textContent = `The pictures could not be loaded: ${error.message}`;
    trouble.hidden = false;
  } finally {
    wall.setAttribute('aria-busy', 'false');
  }
}

/** Lets the last row fill the width if it nearly does; a few pictures alone keep the height of the others. */
function fillLastRow() {
  wall.classList.remove('filled');
  const { right } = wall.lastElementChild?.getBoundingClientRect() ?? { right: 0 };
  wall.classList.toggle('filled', right > wall.getBoundingClientRect().right - wall.clientWidth / 3);
}
new MutationObserver(fillLastRow).observe(wall, { childList: true });
addEventListener('resize', fillLastRow);

older.onclick = () => load(wall.lastElementChild?.id);
acceptPictures((photo) => show(photo, true));

// The subscription starts first and the query follows: a picture that is added in between arrives twice, and none is
// missed.
const words = { on: 'Live', off: 'Reconnecting', refused: 'Not live' };
follow(ADDED, {
  event: ({ photoAdded }) => show(photoAdded, true),
  refetch: () => void load(),
  state(next) {
    if (next === 'on') retryBroken();
    if (wall.getAttribute('aria-busy') === 'true' && next !== 'on') void load();
    live.textContent = words[next];
    live.className = `live ${next === 'on' ? 'on' : 'off'}`;
  },
});

// All tabs of this browser are one visitor.
const visitors = document.querySelector('#visitors');
const id = localStorage.getItem('visitor') ?? Math.random().toString(36).slice(2);
localStorage.setItem('visitor', id);
function showVisitors(count) {
  visitors.textContent = count === 1 ? 'Only you are here' : `${count} people are here`;
}
follow(VISITORS, {
  variables: { id },
  event: ({ visitors: count }) => showVisitors(count),
  // The next event corrects a count that could not be queried.
  refetch: () => void countVisitors().then(showVisitors, () => {}),
});
setInterval(() => {
  for (const time of document.querySelectorAll('time')) time.textContent = when(time.dateTime);
}, 60_000);
