// One picture at full size in a modal dialog. Arrow keys show the next picture, Escape closes the dialog.

const viewer = document.querySelector('#viewer');
const image = document.querySelector('#viewer-image');
const newer = document.querySelector('#newer');
const next = document.querySelector('#next');
let shown;

/** Opens the picture of a tile. */
export function openViewer(tile) {
  turnTo(tile);
  viewer.showModal();
}

function turnTo(tile) {
  if (!tile) return;
  shown = tile;
  const { photo } = tile;
  image.src = photo.url;
  image.alt = photo.title;
  document.querySelector('#viewer-title').textContent = photo.title;
  document.querySelector('#viewer-details').textContent =
    `${photo.width} × ${photo.height}, ${new Date(photo.addedAt).toLocaleString()}`;
  newer.disabled = !tile.previousElementSibling;
  next.disabled = !tile.nextElementSibling;
}

newer.onclick = () => turnTo(shown.previousElementSibling);
next.onclick = () => turnTo(shown.nextElementSibling);
viewer.onkeydown = ({ key }) => {
  if (key === 'ArrowLeft') turnTo(shown.previousElementSibling);
  if (key === 'ArrowRight') turnTo(shown.nextElementSibling);
};
viewer.onclick = ({ target }) => target.closest('button, img') || viewer.close();
viewer.onclose = () => shown.querySelector('button').focus();
