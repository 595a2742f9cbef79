// node referees.js FOLDER...: an extracted archive each, judged by the libraries `ro-crate` and `datapackage` of the npm registry.
// Prints a line for each error, and the number of rows of each table; exits with 1 if there was an error.
const fs = require('fs'), path = require('path');
// Contexts are looked up without a network: the library brings that of RO-Crate, and needs no term of the other.
const bundled = path.join(path.dirname(require.resolve('ro-crate/lib/validator')), 'context.json');
globalThis.fetch = async url => ({
    ok: true,
    json: async () => String(url).includes('/ro/crate/') ? JSON.parse(fs.readFileSync(bundled)) : {'@context': {}},
});
const {Validator} = require('ro-crate/lib/validator'), {Package} = require('datapackage');

const filesBelow = (folder, prefix = '') => fs.readdirSync(path.join(folder, prefix), {withFileTypes: true}).flatMap(entry =>
    entry.isDirectory() ? filesBelow(folder, prefix + entry.name + '/') : [prefix + entry.name]);

async function judgeCrate(folder, complain) {
    const validator = new Validator();
    validator.parseJSON(fs.readFileSync(path.join(folder, 'ro-crate-metadata.json'), 'utf8'));
    if (!validator.crate) return complain('not a crate');
    await validator.crate.resolveContext();
    await validator.validate();
    const found = {};
    for (const file of filesBelow(folder)) {
        found[file] = {exists: true};
        for (let at = file.lastIndexOf('/'); at > 0; at = file.lastIndexOf('/', at - 1)) found[file.slice(0, at + 1)] = {exists: true, isDir: true};
    }
    validator.checkFiles(found);
    if (!validator.results.some(result => result.status === 'success')) complain('ro-crate looked at nothing');
    for (const result of validator.results)
        if (result.status === 'error') complain(`ro-crate: ${result.message} ${result.entity || ''}`);
}

async function judgeTables(folder, descriptor, complain) {
    const base = path.join(folder, path.dirname(descriptor));
    const tables = await Package.load(JSON.parse(fs.readFileSync(path.join(folder, descriptor))), {basePath: base});
    for (const error of tables.errors) complain(descriptor + ': ' + error.message);
    for (const table of tables.resources) {
        const file = path.join(base, table.descriptor.path);
        if (fs.statSync(file).size === 0) continue; // a table that was never begun
        try {
            console.log(`${table.descriptor.path}: ${(await table.read()).length} rows`);
        } catch (error) {
            for (const one of error.multiple ? error.errors : [error]) complain(`${file}: ${one.message}`);
        }
    }
}

(async () => {
    let errors = 0;
    for (const folder of process.argv.slice(2)) {
        const complain = sentence => { errors++; console.log(`${folder}: ${sentence}`); };
        await judgeCrate(folder, complain);
        for (const file of filesBelow(folder))
            if (path.basename(file) === 'datapackage.json') await judgeTables(folder, file, complain);
    }
    process.exit(errors ? 1 : 0);
})();
