/** The functions of the page that format numbers. */
export const FORMAT = `
const whole = new Intl.NumberFormat('en');
const count = (value) => (value < 1e5 ? whole.format(value) : scaled(value, 1000, ['', 'k', 'M', 'G']));
const bytes = (value) => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
const percent = (share) => (share >= 0.9995 || share === 0 ? share * 100 : (share * 100).toFixed(1)) + ' %';

function scaled(value, base, units) {
  let unit = 0;
  while (value >= base && unit < units.length - 1) { value /= base; unit++; }
  return (unit === 0 ? whole.format(Math.round(value)) : value.toFixed(value < 10 ? 1 : 0)) + ' ' + units[unit];
}

function duration(ms) {
  if (ms === null) return '\\u2013';
  if (ms < 1) return (ms * 1000).toFixed(0) + ' µs';
  if (ms < 1000) return ms.toFixed(ms < 10 ? 1 : 0) + ' ms';
  return (ms / 1000).toFixed(1) + ' s';
}

function age(seconds) {
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first === -1) return '0 s';
  return parts.slice(first, first + 2).map(([size, unit], index) => {
    const value = Math.floor((index === 0 ? seconds : seconds % parts[first][0]) / size);
    return value + '\\u00a0' + unit;
  }).join(' ');
}
`;
