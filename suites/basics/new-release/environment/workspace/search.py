print('searching')
