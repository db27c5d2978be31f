/** Whether this is a run of npm run test:all, which repeats slow tests with other versions and more cases. */
export const TEST_ALL: boolean = process.env['TEST_ALL'] === 'true';
